//! The server. It dispatches calls to tools until its input ends or a signal arrives.

use crate::call::{ToolCall, ToolResult};
use crate::first_request_transport::SkipUntilFirstRequestTransport;
use crate::instructions::INSTRUCTIONS;
use crate::tool_error::ToolError;
use crate::tools::{self, Tool};
use plimsoll_store::Project;
use plimsoll_system::signals::{END_SIGNALS, SignalListener};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
    Implementation, InitializeRequestParams, InitializeResult, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, ServerInitializeError, ServiceExt};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, RwLock};

/// How long the server waits at shutdown for running calls, so that commands can end their process groups.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum length of a call id of the client. A longer one is ignored.
const MAX_CALL_ID_BYTES: usize = 128;

/// The server of one project.
#[derive(Clone)]
pub(crate) struct Server {
    project: Project,
    tools: Arc<Vec<Tool>>,
    /// Held by the running call unless it may run long, so that calls run in the order of their arrival.
    order_lock: Arc<Mutex<()>>,
    /// Locked for reading by each running call, so that the shutdown can wait for them.
    running_calls: Arc<RwLock<()>>,
}

impl Server {
    /// Creates the server of the project that the client works in.
    pub(crate) fn for_current_project(has_workspace_tools: bool) -> Server {
        Server {
            project: Project::from_project_dir_variable_or_found_upwards(),
            tools: Arc::new(tools::all_tools(has_workspace_tools)),
            order_lock: Arc::default(),
            running_calls: Arc::default(),
        }
    }

    async fn run_tool_after_earlier_short_calls(&self, tool_index: usize, call: ToolCall) -> ToolResult {
        let tool = &self.tools[tool_index];
        let order_guard = Arc::clone(&self.order_lock).lock_owned().await;
        let running_guard = Arc::clone(&self.running_calls).read_owned().await;
        // A long call waits for its turn and then releases the order lock, so that the next call need not wait for it.
        let order_guard = (!tool.may_run_long()).then_some(order_guard);
        let run_tool = tool.run;
        // The call may block on a lock or a command, and must not block the thread that reads the client's messages.
        let task_result = tokio::task::spawn_blocking(move || {
            let tool_result = run_tool(&call);
            // Returned with the result, so that the next call starts only after this one has ended.
            (tool_result, order_guard, running_guard)
        });
        match task_result.await {
            Ok((tool_result, _order_guard, _running_guard)) => tool_result,
            Err(_) => Err(ToolError::Internal),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let implementation =
            Implementation::new("plimsoll", env!("CARGO_PKG_VERSION")).with_title("Plimsoll");
        let mut config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_instructions(INSTRUCTIONS);
        config.server_info = implementation;
        config
    }

    /// Adds a notice to the instructions if the client is too old to run the hooks that show the memory.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let client_info = &request.client_info;
        let notice = plimsoll_flows::client::notice_if_claude_code_lacks_plugin_hooks(
            &client_info.name,
            &client_info.version,
        );
        let mut result = self.negotiate_initialize(&request)?;
        if let Some(notice) = notice {
            result.instructions = Some(format!("{notice}\n\n{INSTRUCTIONS}"));
        }
        context.peer.set_peer_info(request);
        Ok(result)
    }

    fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListToolsResult, ErrorData>> + Send + '_ {
        let tools = self.tools.iter().map(Tool::to_always_loaded_mcp_tool).collect();
        std::future::ready(Ok(ListToolsResult::with_all_items(tools)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool_index) = self.tools.iter().position(|tool| tool.name == request.name) else {
            return Err(unknown_tool_error(&request.name));
        };
        let tool_result = match self.tools[tool_index].check_arguments(request.arguments.unwrap_or_default())
        {
            Err(error) => Err(error),
            Ok(arguments) => {
                // Claude Code (2.1.329) sends no agent id; hooks find the calling subagent by this id.
                let call_id = context.meta.0.get("claudecode/toolUseId").and_then(|id| id.as_str());
                let call_id =
                    call_id.filter(|id| (1..=MAX_CALL_ID_BYTES).contains(&id.len())).map(str::to_owned);
                let is_canceled = Box::new(move || context.ct.is_cancelled());
                self.run_tool_after_earlier_short_calls(
                    tool_index,
                    ToolCall {
                        project: self.project.with_current_location(),
                        arguments,
                        call_id,
                        is_canceled,
                    },
                )
                .await
            }
        };
        // Only text, because the model sees nothing else if there is structured content.
        let result = match tool_result {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            // An error quotes arguments, which must not look like text of the client.
            Err(error) => {
                let text =
                    plimsoll_domain::memory::render::neutralize_tags_and_hidden_chars(&error.to_string());
                CallToolResult::error(vec![ContentBlock::text(text)])
            }
        };
        Ok(result.into())
    }

    /// Answers a call whose arguments are not an object: rmcp cannot parse it as a call and passes it on as a custom request.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == "tools/call" {
            return Ok(CustomResult::new(tools::arguments_not_an_object_result()));
        }
        Err(ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }
}

fn unknown_tool_error(tool_name: &str) -> ErrorData {
    let hint =
        if tools::is_workspace_tool(tool_name) { ": start plimsoll-mcp with --workspace for it" } else { "" };
    ErrorData::invalid_params(format!("unknown tool {tool_name}{hint}"), None)
}

/// Serves until standard input ends or a signal arrives. Fails if the session cannot be initialized.
pub(crate) fn serve_until_input_end_or_signal(server: Server) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail_with(&format!("no runtime: {error}")),
    };
    let exit_code = runtime.block_on(serve_stdio_until_input_end_or_signal(server));
    // Does not wait for the thread that reads standard input, which may block forever.
    runtime.shutdown_background();
    exit_code
}

async fn serve_stdio_until_input_end_or_signal(server: Server) -> ExitCode {
    let running_calls = Arc::clone(&server.running_calls);
    let (input, output) = rmcp::transport::stdio();
    let transport = AsyncRwTransport::new_server(input, output);
    let running_service = match server.serve(SkipUntilFirstRequestTransport::new(transport)).await {
        Ok(running_service) => running_service,
        Err(ServerInitializeError::ConnectionClosed(_)) => return ExitCode::SUCCESS,
        Err(error) => return fail_with(&error.to_string()),
    };
    let cancellation_token = running_service.cancellation_token();
    tokio::select! {
        _ = running_service.waiting() => {}
        () = wait_for_end_signal() => {}
    }
    cancellation_token.cancel();
    // Running commands end their process groups before the server exits.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, running_calls.write()).await;
    ExitCode::SUCCESS
}

/// Waits for a signal that ends the process. The client sends SIGINT to its servers to end them.
async fn wait_for_end_signal() {
    let Ok(mut listener) = SignalListener::new(END_SIGNALS) else { return std::future::pending().await };
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        listener.wait_for_signal();
        let _ = sender.send(());
    });
    let _ = receiver.await;
}

fn fail_with(message: &str) -> ExitCode {
    crate::print_error(&plimsoll_domain::text::truncate_end(message, 300));
    ExitCode::FAILURE
}
