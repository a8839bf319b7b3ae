package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

const (
	maxReplayed    = routeapi.MaxTested
	maxReplayRows  = 50
	maxReplayKinds = 20
	// maxQuestion bounds a request of a test, in bytes: its frame takes less than the rest.
	maxQuestion = httpx.MaxBody - 4<<10
)

// errUncorrected is why a copy cannot be tested.
const errUncorrected = "Correct the routes that cannot be saved first."

// replay decides on the newest messages by the stored table and by the copy.
func (e *editor) replay(ctx context.Context) (*pages.Replay, error) {
	if e.page.Problems > 0 {
		return &pages.Replay{Problem: errUncorrected}, nil
	}
	inbound, err := rows.NewestInbound(ctx, e.Store, maxReplayed)
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
	tested, err := e.compare(ctx, items)
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
func (e *editor) compare(ctx context.Context, items []routeapi.Item) (all []routeapi.TestedItem, err error) {
	table, err := json.Marshal(e.routes)
	if err != nil {
		return nil, err
	}
	for len(items) > 0 {
		size, n := len(table), 0
		for n < len(items) && size+items[n].Size() <= maxQuestion {
			size += items[n].Size()
			n++
		}
		if n == 0 {
			return nil, apierr.New(apierr.BadRequest, "the table is too large to be compared here")
		}
		var tested routeapi.Tested
		if err := e.ask(ctx, "routd", http.MethodPost, routeapi.TestPath,
			routeapi.Test{Items: items[:n], Routes: e.routes}, &tested); err != nil {
			return nil, err
		}
		if len(tested.Items) != n { // a group was removed a moment ago, for example
			return nil, apierr.New(apierr.Internal, "routd answered %d of %d messages, try again", len(tested.Items), n)
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
		PlatformID: m.PlatformID, StickyGroup: m.Pinned, ReceivedAt: m.ReceivedAt,
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

// test decides on a message that an operator has typed, by the copy and by the stored table.
func (e *editor) test(ctx context.Context) (*pages.TestedMessage, error) {
	if e.page.Problems > 0 {
		return &pages.TestedMessage{Problem: errUncorrected}, nil
	}
	typed := e.page.Test
	jid, err := e.Store.Address(ctx, typed.Chat)
	if err != nil {
		return nil, err
	}
	item := routeapi.Item{
		ID: 1, ChatJID: jid, Sender: typed.Sender, SenderName: typed.SenderName, ThreadID: typed.Thread,
		Topic: typed.Thread, Verb: typed.Verb, ReceivedAt: e.Now().UnixMilli(),
	}
	chat, err := e.Store.Chat(ctx, jid)
	if err != nil {
		return nil, err
	}
	if chat != nil {
		item.Kind, item.StickyGroup = chat.Kind, chat.StickyGroup
	}
	tested, err := e.compare(ctx, []routeapi.Item{item})
	if err != nil {
		return &pages.TestedMessage{Problem: plainText(err.Error())}, nil
	}
	return &pages.TestedMessage{Decision: answerWords(&item, &tested[0].Edited),
		Now: answerWords(&item, &tested[0].Present), Why: lines(tested[0].Edited.Trace)}, nil
}
