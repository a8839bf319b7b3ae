package msg

import "fmt"

// Audience is who may use a command.
type Audience int

// Audiences. ForRouted is every member of a chat that has a group.
const (
	ForAnyone Audience = iota
	ForRouted
	ForOperators
)

// Names of the gateway's commands.
const (
	CommandNew      = "new"
	CommandStop     = "stop"
	CommandStatus   = "status"
	CommandPing     = "ping"
	CommandChatID   = "chatid"
	CommandHelp     = "help"
	CommandApprove  = "approve"
	CommandReject   = "reject"
	CommandWhy      = "why"
	CommandWho      = "who"
	CommandAgent    = "agent"
	CommandModel    = "model"
	CommandHooks    = "hooks"
	CommandOperator = "operator"
	CommandAlerts   = "alerts"
	CommandUndo     = "undo"
	CommandRedo     = "redo"
	CommandSpend    = "spend"
	CommandRules    = "permissions"
)

// GatewayCommand is a command that users write as "/name arguments".
type GatewayCommand struct {
	Name     string // lower case
	Usage    string // the arguments, "" for none
	Help     string // what it does, in a few words, shown to users
	Audience Audience
}

// GatewayCommands are the commands that gated answers itself, in the order in which users see
// them. Adapters register them on platforms that have command lists.
func GatewayCommands() []GatewayCommand {
	return []GatewayCommand{
		{CommandNew, "[#topic] [text]", "start a new session, then ask text", ForRouted},
		{CommandStop, "", "stop what the agent is doing", ForRouted},
		{CommandUndo, "[rest]", "take back the last turn: answers, files and reminders", ForRouted},
		{CommandRedo, "[rest]", "do again what /undo took back", ForRouted},
		{CommandStatus, "", "show the state of this chat", ForRouted},
		{CommandSpend, "", "show what you have used here; operators see this chat's, too", ForRouted},
		{CommandWho, "", "show who may do what in this chat's group", ForRouted},
		{CommandRules, "[revoke N]", "show what this group always allows; approvers revoke a rule", ForRouted},
		{CommandAgent, "[NAME]", "show the agents; operators switch to one", ForRouted},
		{CommandModel, "[NAME]", "show the agent's models; operators choose one", ForRouted},
		{CommandHooks, "[KIND NAME]", "show the group's webhooks; operators add one that answers here", ForRouted},
		{CommandPing, "", "check that the gateway answers", ForAnyone},
		{CommandChatID, "", "show the address of this chat, and yours", ForAnyone},
		{CommandHelp, "", "show this list", ForAnyone},
		{CommandOperator, "CODE", "become an operator, with a code from the dashboard", ForAnyone},
		{CommandApprove, "CODE [folder]", "connect a chat", ForOperators},
		{CommandReject, "CODE [reason]", "reject a chat", ForOperators},
		{CommandWhy, "[MESSAGE]", "as a reply: what happened to that message", ForOperators},
		{CommandAlerts, "[on|off]", "show open problems; get messages about new ones, or not", ForOperators},
	}
}

// CommandIn is a command, such as "new #trip" without its sign, as users write it in a chat: on Slack with "!", since
// it keeps "/" for commands that apps register, and takes none in threads.
func CommandIn(chatJID, command string) string {
	if FamilyOf(chatJID) == "slack" {
		return "!" + command
	}
	return "/" + command
}

// CommandAnywhere is a command for a reader of whom no chat is known.
func CommandAnywhere(command string) string {
	return fmt.Sprintf("/%s (on Slack !%[1]s)", command)
}
