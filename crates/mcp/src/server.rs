//! The server: who answers what, and how it ends.

use crate::call::{Answer, Call};
use crate::instructions::INSTRUCTIONS;
use crate::patient::Patient;
use crate::tool_error::ToolError;
use crate::tools::{self, Tool};
use plimsoll_store::Project;
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
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Mutex, RwLock};

/// How long a command has to end.
const FAREWELL: Duration = Duration::from_secs(3);
/// An id of the client's is no longer than this.
const MOST_ID: usize = 128;

/// The server of one project.
#[derive(Clone)]
pub(crate) struct Server {
    project: Project,
    tools: Arc<Vec<Tool>>,
    /// Calls are done in the order in which they came.
    in_turn: Arc<Mutex<()>>,
    /// Held by those that take long.
    at_work: Arc<RwLock<()>>,
}

impl Server {
    /// The server of the project that the client works in.
    pub(crate) fn of_project(with_workspace: bool) -> Server {
        Server {
            project: Project::for_mcp_server(),
            tools: Arc::new(tools::all(with_workspace)),
            in_turn: Arc::default(),
            at_work: Arc::default(),
        }
    }

    async fn answer(&self, place: usize, call: Call) -> Answer {
        let tool = &self.tools[place];
        let turn = Arc::clone(&self.in_turn).lock_owned().await;
        let work = Arc::clone(&self.at_work).read_owned().await;
        // A long one has waited for its turn, and gives it back at once: the next need not wait for a command.
        let turn = (!tool.is_long()).then_some(turn);
        let run = tool.run;
        // A lock or a command is waited for: that is not for the thread that reads the client's messages.
        let done = tokio::task::spawn_blocking(move || {
            let answer = run(&call);
            // Given back with the answer: the next one begins when this one is told.
            (answer, turn, work)
        });
        match done.await {
            Ok((answer, _turn, _work)) => answer,
            Err(_) => Err(ToolError::Server),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let ours = Implementation::new("plimsoll", env!("CARGO_PKG_VERSION")).with_title("Plimsoll");
        let mut config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_instructions(INSTRUCTIONS);
        config.server_info = ours;
        config
    }

    /// An old client runs no hooks that would show the memory: the model is told so.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let client = &request.client_info;
        let words = plimsoll_flows::client::missing_hooks_notice(&client.name, &client.version);
        let mut answer = self.negotiate_initialize(&request)?;
        if let Some(words) = words {
            answer.instructions = Some(format!("{words}\n\n{INSTRUCTIONS}"));
        }
        context.peer.set_peer_info(request);
        Ok(answer)
    }

    fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListToolsResult, ErrorData>> + Send + '_ {
        let tools = self.tools.iter().map(Tool::described).collect();
        std::future::ready(Ok(ListToolsResult::with_all_items(tools)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(place) = self.tools.iter().position(|tool| tool.name == request.name) else {
            return Err(unknown(&request.name));
        };
        let answer = match self.tools[place].check(request.arguments.unwrap_or_default()) {
            Err(fault) => Err(fault),
            Ok(given) => {
                // The call carries no agent id (2.1.329): hooks know by this id which subagent made it.
                let id = context.meta.0.get("claudecode/toolUseId").and_then(|id| id.as_str());
                let id = id.filter(|id| (1..=MOST_ID).contains(&id.len())).map(str::to_owned);
                let is_given_up = Box::new(move || context.ct.is_cancelled());
                self.answer(
                    place,
                    Call { project: self.project.with_current_location(), given, id, is_given_up },
                )
                .await
            }
        };
        // Text alone: where there is structured content, the model sees nothing else.
        let result = match answer {
            Ok(words) => CallToolResult::success(vec![ContentBlock::text(words)]),
            // What was given is told again there: nothing in it may look like the client's own words.
            Err(error) => {
                let words =
                    plimsoll_domain::memory::render::neutralize_tags_and_hidden_chars(&error.to_string());
                CallToolResult::error(vec![ContentBlock::text(words)])
            }
        };
        Ok(result.into())
    }

    /// A call whose arguments are no object does not parse as a call.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == "tools/call" {
            return Ok(CustomResult::new(tools::no_object()));
        }
        Err(ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }
}

fn unknown(name: &str) -> ErrorData {
    let why = if tools::is_in_workspace(name) { ": start plimsoll-mcp with --workspace for it" } else { "" };
    ErrorData::invalid_params(format!("unknown tool {name}{why}"), None)
}

/// Serves until standard input ends, or we are asked to end.
pub(crate) fn run(server: Server) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("no runtime: {error}")),
    };
    let code = runtime.block_on(serve(server));
    // The thread that reads standard input may wait for ever.
    runtime.shutdown_background();
    code
}

async fn serve(server: Server) -> ExitCode {
    let at_work = Arc::clone(&server.at_work);
    let (input, output) = rmcp::transport::stdio();
    let stdio = AsyncRwTransport::new_server(input, output);
    let running = match server.serve(Patient::new(stdio)).await {
        Ok(running) => running,
        Err(ServerInitializeError::ConnectionClosed(_)) => return ExitCode::SUCCESS,
        Err(error) => return failed(&error.to_string()),
    };
    let client = running.cancellation_token();
    tokio::select! {
        _ = running.waiting() => {}
        () = asked_to_end() => {}
    }
    client.cancel();
    // What a command has started is ended before we are.
    let _ = tokio::time::timeout(FAREWELL, at_work.write()).await;
    ExitCode::SUCCESS
}

/// The client ends its servers with SIGINT.
async fn asked_to_end() {
    let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = signals else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}

fn failed(why: &str) -> ExitCode {
    crate::complain(&plimsoll_domain::text::truncate_end(why, 300));
    ExitCode::FAILURE
}
