package groupconfig

import "strings"

// KeyKind is how a setting is typed.
type KeyKind string

// The kinds of settings.
const (
	KindText   KeyKind = "text"
	KindChoice KeyKind = "choice" // one of Choices
	KindSwitch KeyKind = "switch" // true, or not set
	KindNumber KeyKind = "number"
	KindList   KeyKind = "list" // of texts
	KindRole   KeyKind = "role"
	KindObject KeyKind = "object" // JSON
	KindOther  KeyKind = ""       // has pages of its own
)

// Key is a setting of a group's configuration.
type Key struct {
	Path    string
	Kind    KeyKind
	Choices []string
	Example string
	Help    string // one line of markdown; links are as in routd's README
}

// Section is the first name of a path of two, "" for others.
func (k Key) Section() string {
	section, _, nested := strings.Cut(k.Path, ".")
	if !nested {
		return ""
	}
	return section
}

// Keys are all settings, in the order in which they are documented. routd's README has them as a table.
func Keys() []Key {
	return append([]Key{
		{Path: "assistant_name", Kind: KindText, Help: "the name in its answers"},
		{Path: "rate", Kind: KindNumber, Example: "60",
			Help: "turns per sender and hour: 60 by default, at most 10000, 0 for no limit"},
		{Path: "reach", Kind: KindChoice, Choices: words(ReachWorld, ReachNone),
			Help: "whether members can address other groups of the world by `@name`: `world` (default) or `none`"},
		{Path: "pin", Kind: KindChoice, Choices: words(PinEveryone, PinOperators),
			Help: "who can pin a chat to a group or topic: `everyone` (default) or `operators`"},
		{Path: "observe", Kind: KindChoice, Choices: words(ObserveShared, ObserveAll, ObserveNone),
			Help: "which other chats the agent is shown: `shared` (default, no direct messages), `all` or `none`"},
		{Path: "long", Kind: KindChoice, Choices: words(LongParts, LongFile),
			Help: "tables and code too long for one message: `parts` (several messages, default) or `file`"},
		{Path: "progress", Kind: KindChoice, Choices: words(ProgressLive, ProgressStatus, ProgressOff),
			Help: "what chats show of the agent's work: `live`, `status` (one line after 10 s) or `off`; default: " +
				"`live` in direct messages, threads and web chats, else `status`"},
		{Path: "tool_input", Kind: KindSwitch,
			Help: "`true`: chats also see what tools are called with. gated removes known secrets and whatever looks " +
				"like one, but can miss others"},
		{Path: "steer", Kind: KindChoice, Choices: words(SteerFold, SteerQueue),
			Help: "messages that come while the agent works: `fold` (default: it gets them [at " +
				"once](../docs/agent-protocol.md#messages-that-come-while-it-works), if it can) or `queue`"},
		{Path: "announce", Kind: KindSwitch, Help: "`true`: its chats get a message after a migration"},
		{Path: "transcribe", Kind: KindText, Example: "whisper-cli -np -f {file}",
			Help: "a command that prints the words of the audio file `{file}`: see " +
				"[transcripts](../docs/operations.md#transcripts-of-voice-notes)"},
		{Path: "roles.ask", Kind: KindRole,
			Help: "who can write to the agent: `everyone` in its chats (default), `operators`, `platform admins`, or " +
				"a list of sender ids. Operators have every [role](../docs/onboarding.md#roles)"},
		{Path: "roles.approve", Kind: KindRole,
			Help: "who can grant agents' requests for permission, in the same form; default: the user in a direct " +
				"message, else operators only. An entry such as " +
				"`{\"who\":\"telegram:42\",\"hosts\":[\"api.github.com\"],\"tools\":[\"Bash\"]}` is limited to " +
				"requests about one of these hosts or tools"},
		{Path: "roles.operate", Kind: KindRole,
			Help: "who can use `/agent NAME` and `/model NAME`, raise budgets, and `/stop` what others asked for, in " +
				"the same form as `roles.ask`; default: operators only, and everyone who may ask can `/stop`"},
		{Path: "budget.turn_usd", Kind: KindNumber, Example: "0.5",
			Help: "[budget](../docs/operations.md#budgets) of a turn in dollars, from 0.01; none by default"},
		{Path: "budget.day_usd", Kind: KindNumber, Example: "20",
			Help: "budget of the group per day in dollars, from 0.01; none by default"},
	}, runKeys()...)
}

// runKeys are those that a run depends on.
func runKeys() []Key {
	return []Key{
		{Path: "agent.name",
			Help: "an agent of gated's `AGENTS`, for groups without `agent.command` and `agent.image`; also set by " +
				"`/agent`"},
		{Path: "agent.model", Help: "the model; also set by `/model`"},
		{Path: "agent.runtime", Kind: KindChoice, Choices: words(Process, Bwrap, Docker),
			Help: "`process`, `bwrap` or `docker`; with an `agent.image` it is `docker`"},
		{Path: "agent.command", Kind: KindText, Help: "the agent, run by `sh -c`; with docker inside the image"},
		{Path: "agent.image", Kind: KindText,
			Help: "an image for docker, run with its own program unless there is a command"},
		{Path: "agent.network", Kind: KindChoice, Choices: words(NetworkBridge, NetworkNone, NetworkAsk, NetworkHost),
			Help: "the network of a sandbox or container: `bridge`, `none`, `host` or [`ask`](../docs/egress.md)"},
		{Path: "agent.env", Kind: KindList, Example: "GITHUB_TOKEN",
			Help: "names of gated's variables to pass on, besides `AGENT_ENV`"},
		{Path: "agent.secrets", Kind: KindObject, Example: `{"GH_TOKEN":"github"}`,
			Help: "with the network `ask`: variables whose values the egress proxy [replaces by " +
				"secrets](../docs/egress.md#secrets), such as `{\"GH_TOKEN\":\"github\"}`"},
		{Path: "agent.settings", Kind: KindObject, Example: `{"CLAUDE_PERMISSION_MODE":"plan"}`,
			Help: "further variables, such as `{\"CLAUDE_PERMISSION_MODE\":\"plan\"}`; shown to operators, so no " +
				"secrets"},
		{Path: "limits.memory", Kind: KindText, Example: "2g",
			Help: "most memory of a run, such as `2g`; needs docker, or bwrap with control groups"},
		{Path: "limits.cpus", Kind: KindNumber, Example: "1.5",
			Help: "most processors of a run, such as `1.5`; likewise"},
		{Path: "limits.pids", Kind: KindNumber, Example: "512",
			Help: "most processes of a run, such as `512`; likewise"},
		{Path: "timeouts.timeout", Kind: KindText, Example: "20m",
			Help: "how long an agent may work without a frame, such as `20m`"},
		{Path: "timeouts.idle", Kind: KindText, Example: "60s",
			Help: "how long an agent is kept warm without work, such as `60s`"},
		{Path: "timeouts.transcribe", Kind: KindText, Example: "1m",
			Help: "how long a message waits for its transcript: `1m`, at most `10m`"},
		{Path: "hooks",
			Help: "addresses where services deliver events, by name: see " +
				"[webhooks](../docs/webhooks.md#which-deliveries-start-a-turn)"},
	}
}

func words[T ~string](all ...T) []string {
	texts := make([]string, len(all))
	for i, word := range all {
		texts[i] = string(word)
	}
	return texts
}

// FormerPath is the former name of a setting, "" for none.
func FormerPath(path string) string {
	for former, present := range renamed {
		if present == path {
			return former
		}
	}
	return ""
}
