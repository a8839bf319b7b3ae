package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/layers"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/routecheck"
)

const (
	maxReplayRows  = 50
	maxReplayKinds = 20
	// maxQuestion bounds a request of a test, in bytes: its frame takes less than the rest.
	maxQuestion = httpx.MaxBody - 4<<10
)

// errUncorrected is why a copy cannot be tested.
const errUncorrected = "Correct the routes that cannot be saved first."

// replay decides on the newest messages by the stored table and by the copy.
func (c routePages) replay(ctx context.Context, d *draft, last int) (*pages.Replay, error) {
	table, err := c.table(ctx)
	if err != nil {
		return nil, err
	}
	routes, problems := d.table(table.routes)
	if len(problems) > 0 {
		return &pages.Replay{Problem: errUncorrected}, nil
	}
	inbound, err := rows.NewestInbound(ctx, c.Store, last)
	if err != nil {
		return nil, err
	}
	var items []routeapi.Item
	var of []*rows.Inbound // each item
	for i := range inbound {
		if item, ok := replayItem(&inbound[i]); ok {
			items, of = append(items, item), append(of, &inbound[i])
		}
	}
	tested, err := c.compare(ctx, routes, items)
	if err != nil {
		return &pages.Replay{Problem: plainText(err.Error())}, nil
	}
	result := &pages.Replay{Messages: len(items), Skipped: len(inbound) - len(items)}
	kinds := map[pages.ReplayKind]int{}
	for i, t := range tested {
		was, would := answerWords(&items[i], &t.Present), answerWords(&items[i], &t.Edited)
		if was == would {
			if sameWait(&t.Present, &t.Edited) {
				continue
			}
			would += ", but waits differently"
		}
		result.Changed++
		kinds[pages.ReplayKind{Was: was, Would: would}]++
		if len(result.Rows) < maxReplayRows {
			result.Rows = append(result.Rows, pages.ReplayRow{Inbound: of[i], Was: was, Would: would,
				Why: strings.Join(t.Edited.Trace, "; ")})
		}
	}
	for kind, n := range kinds {
		kind.Count = n
		result.Kinds = append(result.Kinds, kind)
	}
	slices.SortFunc(result.Kinds, func(a, b pages.ReplayKind) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Was, b.Was), cmp.Compare(a.Would, b.Would))
	})
	result.Kinds = result.Kinds[:min(len(result.Kinds), maxReplayKinds)]
	return result, nil
}

// compare asks routd about items, in as many requests as their size needs.
func (c routePages) compare(ctx context.Context, routes []msg.Route,
	items []routeapi.Item) (all []routeapi.TestedItem, err error) {
	table, err := json.Marshal(routes)
	if err != nil {
		return nil, err
	}
	for len(items) > 0 {
		size, n := len(table), 0
		for n < len(items) && n < routeapi.MaxTested && size+items[n].Size() <= maxQuestion {
			size += items[n].Size()
			n++
		}
		if n == 0 {
			return nil, apierr.New(apierr.BadRequest, "the table is too large to be compared here")
		}
		var tested routeapi.Tested
		if err := c.ask(ctx, "routd", http.MethodPost, routeapi.TestPath,
			routeapi.Test{Items: items[:n], Routes: routes}, &tested); err != nil {
			return nil, err
		}
		if len(tested.Problems) > 0 {
			return nil, apierr.New(apierr.BadRequest, "correct the routes first: the one at place %d: %s",
				tested.Problems[0].Row+1, tested.Problems[0].Text)
		}
		if len(tested.Items) != n {
			return nil, apierr.New(apierr.Internal, "routd answered %d of %d messages", len(tested.Items), n)
		}
		all, items = append(all, tested.Items...), items[n:]
	}
	return all, nil
}

// replayItem is the question that gated asked about a row, as far as the row tells. It reports false for what routes do
// not decide.
func replayItem(m *rows.Inbound) (routeapi.Item, bool) {
	item := routeapi.Item{
		ID: m.ID, ChatJID: m.ChatJID, Kind: msg.ChatKind(m.Kind), Topic: m.Topic, ThreadID: m.ThreadID,
		Sender: m.Sender, SenderName: m.SenderName[:min(len(m.SenderName), 256)], Verb: m.Verb,
		PlatformID:  m.PlatformID,
		StickyGroup: m.Pinned, ReceivedAt: m.ReceivedAt,
	}
	reason := msg.Reason(m.Reason)
	switch {
	case m.Own, m.Verb == msg.VerbVote, m.Verb == msg.VerbPollEnd, m.Change && reason != msg.ReasonEditAddressed:
		return item, false
	case slices.Contains([]msg.Reason{msg.ReasonQuoted, msg.ReasonBadRow, msg.ReasonReminder, msg.ReasonVote}, reason):
		return item, false
	case reason == msg.ReasonEditAddressed:
		item.Verb = msg.VerbMention
	case reason == msg.ReasonPrefixGroup:
		item.Folder = m.Folder
	case slices.Contains([]msg.Reason{msg.ReasonCommand, msg.ReasonPrefixTopic, msg.ReasonStickyGroup,
		msg.ReasonStickyTopic, msg.ReasonStickyReset}, reason):
		item.HomeOnly = true // its chat's group counts
	}
	return item, item.Check() == nil
}

// sameWait reports whether messages that are answered are held as long.
func sameWait(a, b *routeapi.Answer) bool {
	return a.Action != routeapi.Trigger || reflect.DeepEqual(a.Impulse, b.Impulse)
}

// answerWords words the way of a message.
func answerWords(item *routeapi.Item, a *routeapi.Answer) string {
	switch {
	case a.Error != "":
		return "refused: " + pages.Line(a.Error)
	case item.HomeOnly && a.Reason != msg.ReasonBuiltinDrop:
		return "for the chat's group, " + cmp.Or(a.Home, "but it has none")
	case a.Action == routeapi.Trigger:
		return "answered by " + a.Folder
	case a.Action == routeapi.Observe:
		return "read along by " + a.Folder
	case a.Action == routeapi.None && a.Reason == msg.ReasonNoGroup:
		return "lost: its group is not registered"
	case a.Action == routeapi.None:
		return "goes nowhere"
	}
	words, folder := targetWords(a.Target)
	return plaintext.Line(strings.TrimSpace(words + " " + folder))
}

// testDraft decides on a message that an operator has typed, by the copy and by the stored table.
func (c routePages) testDraft(ctx context.Context, d *draft, typed pages.TestMessage) (*pages.TestedMessage, error) {
	table, err := c.table(ctx)
	if err != nil {
		return nil, err
	}
	routes, problems := d.table(table.routes)
	if len(problems) > 0 {
		return &pages.TestedMessage{Problem: errUncorrected}, nil
	}
	item, err := c.testItem(ctx, typed)
	if err != nil {
		return nil, err
	}
	t := tester{c.site, table, item, typed.Text}
	edited, why, err := t.decide(ctx, routes)
	var present string
	if err == nil {
		present, _, err = t.decide(ctx, nil)
	}
	if err != nil {
		return &pages.TestedMessage{Problem: plainText(err.Error())}, nil
	}
	return &pages.TestedMessage{Decision: edited, Now: present, Why: lines(why)}, nil
}

// testItem adds the stored state of the chat.
func (c routePages) testItem(ctx context.Context, typed pages.TestMessage) (item routeapi.Item, err error) {
	item = routeapi.Item{
		ID: 1, Sender: typed.Sender, SenderName: typed.SenderName, ThreadID: typed.Thread, Topic: typed.Thread,
		Verb: typed.Verb, ReceivedAt: c.Now().UnixMilli(),
	}
	if item.ChatJID, err = c.Store.Address(ctx, typed.Chat); err != nil {
		return item, err
	}
	chat, err := c.Store.Chat(ctx, item.ChatJID)
	if err == nil && chat != nil {
		item.Kind, item.StickyGroup = chat.Kind, chat.StickyGroup
	}
	return item, err
}

// tester decides on one message.
type tester struct {
	*site
	table *table
	item  routeapi.Item
	text  string
}

// decide returns the decision in words, and the steps to it. A text that begins with a command, a group or a topic is
// read as gated reads it.
func (t *tester) decide(ctx context.Context, routes []msg.Route) (decision string, why []string, err error) {
	item, text := t.item, t.text
	if command, ok := layers.ParseCommand(text, msg.FamilyOf(item.ChatJID), func(string) bool { return false }); ok {
		item.HomeOnly = true
		why = append(why, fmt.Sprintf("the text is the command /%s, which gated answers", command.Name))
	} else if command, ok := layers.ParseCommand(text, msg.FamilyOf(item.ChatJID),
		func(string) bool { return true }); ok {
		why = append(why, "the text is for the bot that it names. For a name of this one, as in BOT_NAMES of gated, "+
			"it is the command: write /"+
			command.Name+" to test that")
	} else if pin, ok := layers.ParseSticky(text); ok {
		item.HomeOnly = true
		why = append(why, fmt.Sprintf("the text %c%s alone pins the chat, or ends its pin, if there is such a "+
			"group or topic", pin.Sigil, pin.Name))
	} else if prefix, ok := layers.ParsePrefix(text); ok {
		step, err := t.prefixed(ctx, routes, &item, prefix)
		if err != nil {
			return "", nil, err
		}
		why = append(why, step)
	}
	answer, trace, err := t.ask(ctx, routes, &item)
	if err != nil {
		return "", nil, err
	}
	return answerWords(&item, answer), append(why, trace...), nil
}

// prefixed finds the group that a text which begins with @name or #topic is for.
func (t *tester) prefixed(ctx context.Context, routes []msg.Route, item *routeapi.Item, prefix layers.Prefix) (string,
	error) {
	home := *item
	home.HomeOnly = true
	answer, _, err := t.ask(ctx, routes, &home)
	if err != nil {
		return "", err
	}
	token := fmt.Sprintf("%c%s", prefix.Sigil, prefix.Name)
	if answer.Home == "" {
		return "the chat has no group: " + token + " is plain text", nil
	}
	if prefix.Sigil == layers.TopicSigil {
		item.Folder, item.Topic = answer.Home, token
		return "the text is for the topic " + token, nil
	}
	named := map[string]bool{}
	for _, o := range t.Operators {
		named[o] = true
	}
	operators, err := t.Store.Operators(ctx, named)
	if err != nil {
		return "", err
	}
	folder, ok := layers.ResolveName(prefix.Name, answer.Home, msg.IsOperator(operators, item.ChatJID, item.Sender),
		routecheck.Registered(t.table.groups))
	if !ok {
		return token + " names no group that this sender reaches: it is plain text", nil
	}
	item.Folder = folder
	return token + " names the group " + folder, nil
}

// ask decides on the item by routes, nil for the stored ones, with the groups that are engaged now.
func (t *tester) ask(ctx context.Context, routes []msg.Route, item *routeapi.Item) (*routeapi.Answer, []string, error) {
	request := struct {
		routeapi.Item
		Routes []msg.Route `json:"routes"`
	}{*item, routes}
	var result struct {
		Answer routeapi.Answer `json:"answer"`
		Trace  []string        `json:"trace"`
	}
	err := t.site.ask(ctx, "routd", http.MethodPost, routeapi.TestPath, request, &result)
	return &result.Answer, result.Trace, err
}
