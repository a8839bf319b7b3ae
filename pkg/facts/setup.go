package facts

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"arizuko/pkg/config"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/routecheck"
	"arizuko/pkg/store"
)

const (
	operatorsFix = "set OPERATORS=telegram:123,slack:U0AB for gated, onbod, routd and dashd: " +
		"the ids of those who may approve chats (send /chatid to the bot in a direct chat)"
	makeCode = "press Make a code and write it to the bot in a direct chat, which needs no restart"
)

// NoOperators adds that no user of a platform is an operator.
func (l *List) NoOperators() {
	l.Warn("operators-empty",
		"no user of a platform is an operator: requests are decided on the dashboard and by `onbod approve` alone, "+
			"and no operator is notified",
		"on the dashboard's page Access "+makeCode+"; or "+operatorsFix).on("/access#operators", "Operators", makeCode)
}

// UnsetOperators adds that OPERATORS is empty. Whether a code has made an operator is in the rows, which were not read.
func (l *List) UnsetOperators() {
	l.Warn("operators-unset", "OPERATORS is not set: until a code of the dashboard has made a user an operator, "+
		"requests are decided there and by `onbod approve` alone, and no operator is notified", operatorsFix)
}

// Operators are whom OPERATORS names, and who became one by a code.
func Operators(ctx context.Context, rows store.Reader, environment []string) (senders []string, err error) {
	for _, operator := range environment {
		senders = append(senders, strings.TrimSpace(operator))
	}
	made, err := rows.MadeOperators(ctx)
	for _, o := range made {
		senders = append(senders, o.Sender)
	}
	return senders, err
}

// OperatorChats are the direct chats of the operators who have one, by their ids.
func OperatorChats(ctx context.Context, rows store.Reader, environment []string) (map[string]string, error) {
	operators, err := Operators(ctx, rows, environment)
	chats := map[string]string{}
	for _, operator := range operators {
		jid, err := factrows.DirectChat(ctx, rows, operator)
		if err != nil {
			return nil, err
		}
		if jid != "" && msg.AddressedFolder(jid) == "" {
			chats[operator] = jid
		}
	}
	return chats, err
}

// InvalidOperators adds the entries of OPERATORS that are no user's id.
func (l *List) InvalidOperators(entries []string) {
	for _, entry := range entries {
		if reason := config.OperatorProblem(entry); reason != "" {
			l.Refuse("operators-invalid", "OPERATORS: "+entry+" "+reason+": this operator can decide nothing",
				operatorsFix)
		}
	}
}

// Unconfined adds the groups that strangers can reach and whose agents nothing confines. runtime is how a group's agent
// is run, "" where none is or that is not known.
func (l *List) Unconfined(routes []msg.Route, groups []msg.Group, runtime func(msg.Group) groupconfig.Runtime) {
	runtimes := map[string]groupconfig.Runtime{}
	for _, g := range groups {
		runtimes[g.Folder] = runtime(g)
	}
	reached := routecheck.Reached(routecheck.Openings(routes, groups), groups)
	for _, folder := range slices.Sorted(maps.Keys(reached)) {
		if runtimes[folder] != groupconfig.Process {
			continue
		}
		by := fmt.Sprintf("route %d", reached[folder].Route)
		if from := reached[folder].Folder; from != folder {
			by += " and @name from " + from
		}
		l.Problem("unconfined",
			fmt.Sprintf("strangers can reach group %s (by %s), whose agent runs as process: "+
				"nothing confines what they talk it into", folder, by),
			"use AGENT_SANDBOX=bwrap or AGENT_RUNTIME=docker, or close the group: see `routd check`").
			on("/groups/"+folder+"#edit", "Settings of the group",
				"close the group: list who can write to its agent, or choose the runtime bwrap or docker")
	}
}

// Unrouted is the remedy for a row that no route has taken.
func Unrouted(m *msg.Message) string {
	return fmt.Sprintf("message %d went nowhere. To connect its chat to a group: `%s`; "+
		"to see which routes fit it: `routd routes test --chat %s --verb %s --sender %s`",
		m.ID, ConnectCommand(m.ChatJID), word(m.ChatJID, "CHAT"), word(cmp.Or(m.Verb, msg.VerbMessage), "VERB"),
		word(m.Sender, "SENDER"))
}

// UnroutedPage is the editor of routes with a route for the row's chat, and the row as the message to test.
func UnroutedPage(m *msg.Message) Page {
	row := url.Values{"chat": {m.ChatJID}, "sender": {m.Sender}, "name": {m.SenderName}, "thread": {m.ThreadID},
		"verb": {cmp.Or(m.Verb, msg.VerbMessage)}}
	return Page{Path: "/routes/edit?" + row.Encode() + "#match-n1", Text: "Connect this chat to a group",
		Fix: fmt.Sprintf("Message %d went nowhere: no route takes it. A route for its chat changes that", m.ID)}
}

// ConnectCommand is the command that connects a chat to a group.
func ConnectCommand(jid string) string {
	return fmt.Sprintf("routd routes add --match 'chat_jid=%s' --target GROUP", word(jid, "CHAT"))
}

// word is a value that stands in a command, or in a route's match, for itself; instead of any other one a placeholder
// is printed: operators copy commands, and addresses and ids come from platforms.
func word(value, placeholder string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune(":+-_./@", r)
	}
	if value == "" || value[0] == '-' || strings.ContainsFunc(value, func(r rune) bool { return !plain(r) }) {
		return placeholder
	}
	return value
}
