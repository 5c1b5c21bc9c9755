"""Where the package may catch everything: where foreign code ends and its error is handed on.

A broad `except` anywhere else hides our own mistakes. `contextlib.suppress(Exception)` is one, too.
"""

import ast

from tests.architecture.sources import dotted_name, modules, walk_with_scope

BROAD = {"Exception", "BaseException", "builtins.Exception", "builtins.BaseException"}

# (module, function): to whom the error is handed on.
GUARDS: dict[tuple[str, str], str] = {
    ("_process/background.py", "in_background"): "raised again, outside of the task group",
    ("_process/background.py", "in_background.run"): "raised again, where the block ends",
    ("adapters/console.py", "Console._submit_line"): "told to the person at the terminal, and logged",
    ("adapters/webhook.py", "Webhook._submit_message"): "the sender is asked to try again, and it is logged",
    (
        "adapters/webhooks/adapter.py",
        "WebhookAdapter._take_status",
    ): "logged; the platform has done its part",
    ("adapters/webhooks/engine.py", "WebhookEngine.answer"): "the platform delivers again, and it is logged",
    ("adapters/webhooks/engine.py", "WebhookEngine._events_of"): "logged; the webhook is put aside",
    (
        "integrations/matrix/adapter.py",
        "HomeserverAdapter._sync_forever",
    ): "logged; the same sync is asked for again",
    ("adapters/group_talk.py", "_asked"): "the message is put aside with it",
    ("integrations/matrix/events.py", "_asked"): "the event is put aside with it",
    (
        "integrations/matrix/receiving.py",
        "SyncReceiver._is_wanted",
    ): "logged; nobody's invitation is followed",
    ("integrations/matrix_nio.py", "NioApi.hand_on"): "logged; the gateway has what the sync brought",
    ("integrations/matrix_nio.py", "logged_in_client"): "raised again, as what is wrong with the keys",
    (
        "integrations/matrix_nio_encryption.py",
        "NioEncryption._opened_message",
    ): "logged; the next message may be a key",
    ("cli/adapter_health.py", "_check_connection"): "told, as what is wrong with the adapter",
    ("integrations/registry.py", "_factory_of_package"): "raised again as what is wrong with the package",
    ("integrations/discord/receiving.py", "DiscordReceiver._work_off"): "logged; the same is done again",
    ("integrations/discord/sender.py", "DiscordSender.call"): "raised again, as what it means",
    (
        "integrations/discord_py/listening.py",
        "ClientListener._is_handled",
    ): "logged; other people's messages go on",
    (
        "integrations/discord_py/listening.py",
        "ClientListener._take_interaction",
    ): "logged; the press is taken, and Discord shows a failure",
    (
        "integrations/discord_py/listening.py",
        "ClientListener._take_interaction.hand_over",
    ): "logged; the press is not acknowledged, and Discord shows that",
    ("integrations/telegram/webhook.py", "TelegramWebhook._set_webhook"): "raised again, as what it means",
    (
        "integrations/mattermost/adapter.py",
        "MattermostAdapter._look_forever",
    ): "logged; the posts are fetched again",
    ("integrations/telegram/adapter.py", "TelegramAdapter._introduce"): "raised again, as what it means",
    (
        "integrations/telegram/adapter.py",
        "TelegramAdapter._is_handled",
    ): "logged; other people's updates go on",
    ("integrations/telegram/adapter.py", "TelegramAdapter._poll"): "logged; the updates are fetched again",
    ("agents/tools.py", "Tool.call"): "the model is told, and it is logged",
    ("runtime/agents/cache.py", "AgentCache._fits_weight_limit"): "logged; the agent is closed and not kept",
    ("runtime/queue/aliases.py", "Aliases.__call__"): "raised again, as what it means for the message",
    (
        "runtime/queue/aliases.py",
        "CachedAliases._ask",
    ): "the resolver's failure is logged, the plain id is used",
    (
        "runtime/gateway/commands/executor.py",
        "CommandExecutor._call_handler",
    ): "logged; the person is told that it failed",
    (
        "runtime/gateway/commands/executor.py",
        "CommandExecutor._do_and_settle",
    ): "logged; the command is found open by the next start",
    (
        "runtime/gateway/connections.py",
        "Connections._keep_connected",
    ): "logged; the adapter is connected again",
    ("runtime/context.py", "StoreContext.has_active_work"): "a session of which nobody knows counts as busy",
    ("runtime/user_code.py", "_WorkOutcome.run"): "raised or told where the outcome is waited for",
    (
        "runtime/delivery/notice_wording.py",
        "word_notice",
    ): "logged; the notice is sent in our words",
    ("runtime/delivery/sending.py", "send_reply"): "told apart by its kind, and kept with the reply",
    ("runtime/gateway/running_turn.py", "_agent_takes"): "logged; the message waits for a turn of its own",
    ("runtime/agents/search_tool.py", "SessionSearch._summarise"): "the places that match are shown instead",
    ("runtime/queue/routing.py", "SingleFlight.share"): "handed to everybody who shares the flight",
    ("runtime/gateway/execution.py", "TurnExecution.execute"): "raised again once what was used is counted",
    (
        "runtime/gateway/execution.py",
        "TurnExecution._end_turn",
    ): "what an agent left is refused: its turn fails",
    (
        "runtime/gateway/execution.py",
        "TurnExecution._run_agent",
    ): "the failure of an agent or a factory is the turn's",
    ("runtime/gateway/runner.py", "TurnRunner._run_turn"): "logged; other people's turns go on",
    (
        "storage/control/server.py",
        "ControlServer._run_operation",
    ): "told to the client and logged; the store goes on",
    (
        "storage/engines/server/batching.py",
        "ParallelTransaction.take_step",
    ): "handed to whoever waits for it",
    ("storage/engines/server/batching.py", "GroupingDriver._write_group"): "handed to the whole group",
    (
        "storage/engines/mysql/connection.py",
        "ConnectionLender._configure",
    ): "the connection is closed, then it is raised again",
    (
        "storage/engines/server/driver.py",
        "ServerDriver._begin_on_connection",
    ): "raised again, unless another connection does",
    ("storage/engines/server/driver.py", "ServerDriver._transaction"): "raised again once all is undone",
    ("storage/engines/server/driver.py", "_error_of"): "raised again by whoever waits for the work",
    (
        "storage/engines/sqlite/worker.py",
        "SqliteWorker._run_batch",
    ): "handed to everybody who waits for the batch",
    (
        "storage/engines/sqlite/worker.py",
        "SqliteWorker._run_call",
    ): "handed to the one who waits for the call",
    ("storage/engines/sqlite/worker.py", "SqliteWorker._run_transaction"): "handed to whoever waits for it",
    (
        "storage/engines/sqlite/worker.py",
        "TransactionDrive.drive",
    ): "raised again once it is undone",
    ("storage/engines/registry.py", "load_provider"): "raised again as what is wrong with the package",
    (
        "storage/search/sqlite_index.py",
        "SqliteSearchIndex._run_duty",
    ): "reported; what is wrong with the index stops nobody",
    ("storage/search/sqlite_file.py", "IndexFile.connect"): "the file is let go of, then it is raised again",
    ("storage/transfer/export_files.py", "open_target"): "the new file is abandoned, then it is raised again",
    (
        "storage/sessions_json.py",
        "SnapshotWriter._new_file",
    ): "the new file is abandoned, then it is raised again",
}


def is_broad(exception: ast.expr | None) -> bool:
    if exception is None:
        return True
    if isinstance(exception, ast.Tuple):
        return any(is_broad(part) for part in exception.elts)
    return dotted_name(exception) in BROAD


def catches_everything(node: ast.AST) -> bool:
    match node:
        case ast.ExceptHandler(type=exception):
            return is_broad(exception)
        case ast.Call(func=function, args=exceptions):
            suppresses = dotted_name(function) in {"suppress", "contextlib.suppress"}
            return suppresses and any(is_broad(exception) for exception in exceptions)
        case _:
            return False


def broad_handlers() -> set[tuple[str, str]]:
    return {
        (module.name, scope)
        for module in modules()
        for scope, node in walk_with_scope(module.tree)
        if catches_everything(node)
    }


def test_everything_is_caught_only_where_foreign_code_ends():
    assert broad_handlers() - GUARDS.keys() == set()


def test_every_listed_guard_still_exists():
    assert GUARDS.keys() - broad_handlers() == set()
