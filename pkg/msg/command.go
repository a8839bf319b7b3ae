package msg

// Audience is who may use a command.
type Audience int

// Audiences. ForRouted is anyone in a chat that has a group.
const (
	ForAnyone Audience = iota
	ForRouted
	ForOperators
)

// Names of the gateway's commands.
const (
	CommandNew     = "new"
	CommandStop    = "stop"
	CommandStatus  = "status"
	CommandPing    = "ping"
	CommandChatID  = "chatid"
	CommandHelp    = "help"
	CommandApprove = "approve"
	CommandReject  = "reject"
)

// GatewayCommand is one that people write as "/name arguments".
type GatewayCommand struct {
	Name     string // lower case
	Usage    string // the arguments, "" for none
	Help     string // what it does, in a few words
	Audience Audience
}

// GatewayCommands are the commands that gated answers itself, in the order in which people see
// them. Adapters offer them where the platform has a list of its own.
func GatewayCommands() []GatewayCommand {
	return []GatewayCommand{
		{CommandNew, "[#topic] [text]", "start afresh, then ask text", ForRouted},
		{CommandStop, "", "stop what the agent is doing", ForRouted},
		{CommandStatus, "", "show how this chat is doing", ForRouted},
		{CommandPing, "", "see whether the gateway is there", ForAnyone},
		{CommandChatID, "", "show the address of this chat", ForAnyone},
		{CommandHelp, "", "show this list", ForAnyone},
		{CommandApprove, "CODE [folder]", "connect a chat", ForOperators},
		{CommandReject, "CODE [reason]", "turn a chat down", ForOperators},
	}
}
