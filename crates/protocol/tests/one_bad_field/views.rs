//! The leaves of a parsed document, by the JSON pointers of their fields. Every struct is destructured without `..`,
//! so that a new field cannot be forgotten here.

use plimsoll_protocol::event::{
    BackgroundTask, ModelSwitch, ResumedContext, SessionStart, Stop, StopFailure,
};
use plimsoll_protocol::rate_limit::{QuotaWindow, RateLimit};
use plimsoll_protocol::result::{ClientResult, ModelUsage};
use plimsoll_protocol::status::{
    ContextWindow, PromptCache, ReasoningEffort, StatusCost, StatusModel, StatusPayload, SubscriptionLimit,
    SubscriptionLimits, Workspace,
};
use plimsoll_protocol::tool::{PendingToolCall, ToolCall, ToolInput};
use plimsoll_protocol::transcript::{CompactMetadata, Message, TranscriptEntry, Usage};
use plimsoll_protocol::{HookEvent, HookPayload};
use std::collections::BTreeMap;

/// Leaves by pointer, as their `Debug` text.
pub(crate) type View = BTreeMap<String, String>;

macro_rules! leaves {
    ($view:ident, $at:expr, $($name:literal => $value:expr),* $(,)?) => {{
        $( $view.insert(format!("{}/{}", $at, $name), format!("{:?}", $value)); )*
    }};
}

pub(crate) fn hook(hook: &HookPayload) -> View {
    let HookPayload {
        session_id,
        transcript_path,
        cwd,
        agent_id,
        agent_type,
        is_from_other_client: _,
        event,
    } = hook;
    let mut view = View::new();
    leaves!(view, "", "session_id" => session_id, "transcript_path" => transcript_path, "cwd" => cwd,
        "agent_id" => agent_id, "agent_type" => agent_type, "hook_event_name" => event.name());
    match event {
        HookEvent::SessionStart(SessionStart { source, model, resumed_context }) => {
            let ResumedContext { context_tokens, is_cache_likely_expired, cache_write_usd } = resumed_context;
            leaves!(view, "", "source" => source, "model" => model, "context_tokens" => context_tokens,
                "prompt_cache_likely_expired" => is_cache_likely_expired,
                "estimated_cache_write_usd" => cache_write_usd);
        }
        HookEvent::PreModelSwitch(ModelSwitch {
            from_model,
            to_model,
            context_tokens,
            is_cache_warm,
            cache_write_usd,
            cache_ttl,
        }) => leaves!(view, "", "from_model" => from_model, "to_model" => to_model,
            "context_tokens" => context_tokens, "prompt_cache_warm" => is_cache_warm,
            "estimated_cache_write_usd" => cache_write_usd, "cache_ttl" => cache_ttl),
        HookEvent::SessionEnd { reason } => leaves!(view, "", "reason" => reason),
        HookEvent::UserPromptSubmit { prompt } => leaves!(view, "", "prompt" => prompt),
        HookEvent::PreToolUse(PendingToolCall { tool_name, tool_use_id, tool_input }) => {
            let input = tool_input.as_ref().map(|raw| raw.get());
            leaves!(view, "", "tool_name" => tool_name, "tool_use_id" => tool_use_id, "tool_input" => input);
        }
        HookEvent::PostToolUse(one) | HookEvent::PostToolUseFailure(one) => call(&mut view, "", one),
        HookEvent::PostToolBatch(calls) => {
            for (number, one) in calls.iter().enumerate() {
                call(&mut view, &format!("/tool_calls/{number}"), one);
            }
        }
        HookEvent::Stop(end) | HookEvent::SubagentStop(end) => stop(&mut view, end),
        HookEvent::StopFailure(StopFailure { error, error_details, last_assistant_message }) => {
            leaves!(view, "", "error" => error, "error_details" => error_details,
                "last_assistant_message" => last_assistant_message);
        }
        HookEvent::PreCompact | HookEvent::PostCompact | HookEvent::SubagentStart | HookEvent::Other(_) => {}
    }
    view
}

fn stop(view: &mut View, stop: &Stop) {
    let Stop {
        stop_hook_active,
        last_assistant_message,
        background_tasks,
        session_cron_count: session_crons,
        agent_transcript_path,
    } = stop;
    leaves!(view, "", "stop_hook_active" => stop_hook_active, "last_assistant_message" => last_assistant_message,
        "session_crons" => session_crons, "agent_transcript_path" => agent_transcript_path);
    for (number, BackgroundTask { status }) in background_tasks.iter().enumerate() {
        leaves!(view, format!("/background_tasks/{number}"), "status" => status);
    }
}

fn call(view: &mut View, at: &str, call: &ToolCall) {
    let ToolCall { tool_name, tool_use_id, tool_input, tool_response } = call;
    let ToolInput { file_path, command, old_string, new_string, content } = tool_input;
    let answer = tool_response.as_ref().map(|raw| raw.get());
    leaves!(view, at, "tool_name" => tool_name, "tool_use_id" => tool_use_id, "tool_response" => answer,
        "tool_input/file_path" => file_path, "tool_input/command" => command,
        "tool_input/old_string" => old_string, "tool_input/new_string" => new_string,
        "tool_input/content" => content);
}

pub(crate) fn status(status: &StatusPayload) -> View {
    let StatusPayload {
        session_id,
        transcript_path,
        cwd,
        model,
        workspace,
        cost,
        context_window,
        version,
        effort: ReasoningEffort { level },
        prompt_cache: PromptCache { warm, hit_ratio, expires_at },
        rate_limits: SubscriptionLimits { five_hour, seven_day, spend_limit },
    } = status;
    let StatusModel { id, display_name } = model;
    let Workspace { current_dir, project_dir } = workspace;
    let StatusCost { total_cost_usd, total_duration_ms, total_lines_added, total_lines_removed } = cost;
    let ContextWindow { context_window_size, total_input_tokens, current_usage, used_percentage } =
        context_window;
    let mut view = View::new();
    leaves!(view, "", "session_id" => session_id, "transcript_path" => transcript_path, "cwd" => cwd,
        "version" => version, "model/id" => id, "model/display_name" => display_name,
        "workspace/current_dir" => current_dir, "workspace/project_dir" => project_dir,
        "cost/total_cost_usd" => total_cost_usd, "cost/total_duration_ms" => total_duration_ms,
        "cost/total_lines_added" => total_lines_added, "cost/total_lines_removed" => total_lines_removed,
        "effort/level" => level, "prompt_cache/warm" => warm, "prompt_cache/hit_ratio" => hit_ratio,
        "prompt_cache/expires_at" => expires_at);
    for (name, limit) in [("five_hour", five_hour), ("seven_day", seven_day), ("spend_limit", spend_limit)] {
        let SubscriptionLimit { used_percentage, resets_at } = limit.clone().unwrap_or_default();
        leaves!(view, format!("/rate_limits/{name}"), "used_percentage" => used_percentage,
            "resets_at" => resets_at);
    }
    leaves!(view, "/context_window", "context_window_size" => context_window_size,
        "total_input_tokens" => total_input_tokens,
        "used_percentage" => used_percentage);
    usage(&mut view, "/context_window/current_usage", current_usage.as_ref());
    view
}

fn usage(view: &mut View, at: &str, usage: Option<&Usage>) {
    let Some(Usage { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens }) =
        usage
    else {
        return;
    };
    leaves!(view, at, "input_tokens" => input_tokens, "cache_creation_input_tokens" => cache_creation_input_tokens,
        "cache_read_input_tokens" => cache_read_input_tokens, "output_tokens" => output_tokens);
}

pub(crate) fn result(result: &ClientResult) -> View {
    let ClientResult {
        kind,
        subtype,
        is_error,
        terminal_reason,
        api_error_status,
        api_error,
        result: text,
        session_id,
        total_cost_usd,
        model_usage,
        permission_denials,
        errors,
    } = result;
    let mut view = View::new();
    leaves!(view, "", "type" => kind, "subtype" => subtype, "is_error" => is_error,
        "terminal_reason" => terminal_reason, "api_error_status" => api_error_status, "api_error" => api_error, "result" => text,
        "session_id" => session_id, "total_cost_usd" => total_cost_usd,
        "permission_denials" => permission_denials, "errors" => errors);
    for (model, figures) in model_usage {
        let ModelUsage {
            context_window,
            input_tokens,
            output_tokens,
            cache_read_input_tokens,
            cache_creation_input_tokens,
            cache_creation_1h,
            web_search_requests,
            cost_usd,
        } = figures;
        leaves!(view, format!("/modelUsage/{model}"), "contextWindow" => context_window,
            "inputTokens" => input_tokens,
            "outputTokens" => output_tokens, "cacheReadInputTokens" => cache_read_input_tokens,
            "cacheCreationInputTokens" => cache_creation_input_tokens,
            "cacheCreationEphemeral1hInputTokens" => cache_creation_1h, "webSearchRequests" => web_search_requests,
            "costUSD" => cost_usd);
    }
    view
}

/// The pointers are relative to `rate_limit_info`.
pub(crate) fn rate_limit(limit: &RateLimit) -> View {
    let RateLimit { status, kind, resets_at, overage_resets_at, is_using_overage, .. } = limit;
    let mut view = View::new();
    leaves!(view, "", "status" => status, "rateLimitType" => kind, "resetsAt" => resets_at,
        "overageResetsAt" => overage_resets_at,
        "isUsingOverage" => is_using_overage);
    for (name, window) in [("five_hour", limit.five_hour_window()), ("seven_day", limit.seven_day_window())] {
        let Some(QuotaWindow { utilization, resets_at }) = window else { continue };
        leaves!(view, format!("/unifiedWindows/{name}"), "utilization" => utilization, "resetsAt" => resets_at);
    }
    view
}

pub(crate) fn line(line: &TranscriptEntry) -> View {
    let TranscriptEntry {
        kind,
        subtype,
        is_sidechain,
        is_api_error_message,
        error,
        requested_model,
        timestamp,
        version,
        cwd,
        message,
        compact_metadata,
        tool_use_result,
    } = line;
    let Message { id, model, content, usage: spent, parsed_blocks: _ } = message;
    let CompactMetadata { pre_tokens, post_tokens } = compact_metadata;
    let mut view = View::new();
    leaves!(view, "", "type" => kind, "subtype" => subtype, "isSidechain" => is_sidechain,
        "isApiErrorMessage" => is_api_error_message, "error" => error,
        "requestedModel" => requested_model, "timestamp" => timestamp, "version" => version, "cwd" => cwd,
        "toolUseResult" => tool_use_result.as_ref().map(|raw| raw.get()),
        "message/id" => id, "message/model" => model,
        "message/content" => content.as_ref().map(|raw| raw.get()),
        "compactMetadata/preTokens" => pre_tokens, "compactMetadata/postTokens" => post_tokens);
    usage(&mut view, "/message/usage", spent.as_ref());
    view
}
