package history

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/emoji"
	"arizuko/pkg/msg"
	"arizuko/slakd/internal/inbound"
	"arizuko/slakd/internal/slackapi"
)

const (
	// maxReread is how many replies of a thread before the bookmark are read again for their changes: with the new ones
	// they mostly fit into a page.
	maxReread = 50
	// maxPolls bounds the open polls of a conversation whose votes are asked for.
	maxPolls = 20
	// settleTime is how old a message must be for its absence to mean that it was deleted.
	settleTime = time.Minute
	// rowsAtOnce is how many rows are read at once.
	rowsAtOnce = 500
)

// change has the changes of a message that the history shows and no row records.
type change struct {
	ts  string // of the message
	row *msg.Message
	in  adapter.Inbound
	own bool // the message has a row, or is the bot's
}

// known are the rows about the messages of a span of time, by the id of the message.
type known struct {
	posts   map[string]*msg.Message
	changes map[string][]*msg.Message // in the order in which they were stored
}

// eachRow calls do with the rows about the messages from one time to another: with a message's, then with those of its
// changes.
func (r *Reader) eachRow(ctx context.Context, channel string, from, to int64,
	do func(ts string, row *msg.Message)) error {
	after, before := timestamp(from), timestamp(to)+";" // changes have the id and a colon
	for {
		rows, err := rows.Posts(ctx, r.Store.Reader, r.Platform+":"+channel, after, before, rowsAtOnce)
		if err != nil {
			return err
		}
		for _, row := range rows {
			ts, _, _ := strings.Cut(row.PlatformID, ":")
			do(ts, row)
		}
		if len(rows) < rowsAtOnce {
			return nil
		}
		after = rows[len(rows)-1].PlatformID + "\x00"
	}
}

// knownIn reads the rows about the messages from one time to another.
func (r *Reader) knownIn(ctx context.Context, channel string, from, to int64) (known, error) {
	k := known{map[string]*msg.Message{}, map[string][]*msg.Message{}}
	err := r.eachRow(ctx, channel, from, to, func(ts string, row *msg.Message) {
		if row.PlatformID == ts {
			k.posts[ts] = row
		} else {
			k.changes[ts] = append(k.changes[ts], row)
		}
	})
	for _, rows := range k.changes {
		slices.SortFunc(rows, func(one, other *msg.Message) int { return cmp.Compare(one.ID, other.ID) })
	}
	return k, err
}

// has reports whether a change of a message has a row.
func (k known) has(ts, id string) bool {
	return slices.ContainsFunc(k.changes[ts], func(row *msg.Message) bool { return row.PlatformID == id })
}

// content is the last content of a message that a row has.
func (k known) content(ts string) string {
	for _, row := range slices.Backward(k.changes[ts]) {
		if row.Verb == msg.VerbEdit {
			return row.Content
		}
	}
	return k.posts[ts].Content
}

// compare notes the changes of messages. Those that were compared before are left out.
func (r *Reader) compare(ctx context.Context, s *adapter.Shell, g *gathering, messages []message) error {
	messages = slices.DeleteFunc(slices.Clone(messages), func(m message) bool { return g.seen[m.at] })
	if len(messages) == 0 {
		return nil
	}
	k, err := r.knownIn(ctx, g.channel, slices.MinFunc(messages, byTime).at, slices.MaxFunc(messages, byTime).at)
	if err != nil {
		return err
	}
	for i := range messages {
		g.seen[messages[i].at] = true
		r.compareMessage(ctx, s, g, &messages[i], k)
	}
	return nil
}

// findDeleted notes which messages of a thread, "" for none, are not shown though they have rows, from a time to the
// end of what is certain.
func (r *Reader) findDeleted(ctx context.Context, g *gathering, thread string, from int64) error {
	if g.partial || from > g.upTo {
		return nil
	}
	gone := map[string]*msg.Message{}
	err := r.eachRow(ctx, g.channel, from, g.upTo, func(ts string, row *msg.Message) {
		switch {
		case row.PlatformID == ts && !g.seen[micros(ts)] && isPost(row) && row.ThreadID == thread:
			gone[ts] = row
		case row.Verb == msg.VerbDelete:
			delete(gone, ts)
		}
	})
	for ts, row := range gone {
		g.note(change{ts: ts, row: inbound.Deleted(row, r.nowTS())})
	}
	return err
}

// isPost reports whether a row is a message of a user or another bot.
func isPost(row *msg.Message) bool {
	return row.Direction == msg.In && slices.Contains([]string{msg.VerbMessage, msg.VerbMention, msg.VerbReply},
		row.Verb)
}

// compareMessage notes the changes of a message.
func (r *Reader) compareMessage(ctx context.Context, s *adapter.Shell, g *gathering, m *message, k known) {
	row := k.posts[m.TS]
	hasPost := row != nil && isPost(row)
	if m.Subtype == "tombstone" { // a deleted post that began a thread
		if hasPost && !k.has(m.TS, m.TS+":d") {
			g.note(change{ts: m.TS, row: inbound.Deleted(row, r.nowTS())})
		}
		return
	}
	if hasPost && len(m.Edited) > 0 {
		r.compareEdit(ctx, s, g, m, k)
	}
	if hasPost && len(m.Attachments) > 0 {
		r.comparePreview(ctx, s, g, m, k)
	}
	r.compareReactions(ctx, s, g, m, k)
}

// compareEdit notes an edit that has no row.
func (r *Reader) compareEdit(ctx context.Context, s *adapter.Shell, g *gathering, m *message, k known) {
	var edited inbound.Edited
	if json.Unmarshal(m.Edited, &edited) != nil || micros(edited.TS) <= g.since || k.has(m.TS, m.TS+":e:"+edited.TS) {
		return
	}
	in, row := r.changed(ctx, s, g, m, func(now *inbound.Message) *inbound.Message {
		return &inbound.Message{Subtype: "message_changed", Changed: now, EventTS: edited.TS}
	})
	if row != nil && row.Content != k.content(m.TS) {
		k.changes[m.TS] = append(k.changes[m.TS], row)
		g.note(change{ts: m.TS, row: row, in: in, own: true})
	}
}

// comparePreview notes messages that the text links to and that Slack has added since.
func (r *Reader) comparePreview(ctx context.Context, s *adapter.Shell, g *gathering, m *message, k known) {
	in, row := r.changed(ctx, s, g, m, func(now *inbound.Message) *inbound.Message {
		return &inbound.Message{Subtype: "message_changed", Changed: now, Previous: now.WithoutQuotes(),
			EventTS: r.nowTS()}
	})
	if row == nil || k.has(m.TS, row.PlatformID) {
		return
	}
	if old := k.content(m.TS); row.Content != old && strings.HasPrefix(row.Content, old) {
		g.note(change{ts: m.TS, row: row, in: in, own: true})
	}
}

// changed converts a message, as it is now, to the row of a change; nil if it makes none.
func (r *Reader) changed(ctx context.Context, s *adapter.Shell, g *gathering, m *message,
	of func(now *inbound.Message) *inbound.Message) (in adapter.Inbound, row *msg.Message) {
	decode := func() (err error) {
		now := &inbound.Message{}
		if err = json.Unmarshal(m.raw, now); err != nil {
			return err
		}
		now.Channel = g.channel
		event := of(now)
		event.Channel = g.channel
		in, err = r.Convert(ctx, &inbound.Event{Message: event})
		return err
	}
	if !s.Decode("change of message "+m.TS+" of "+g.channel, decode) || len(in.Messages) != 1 {
		return in, nil
	}
	return in, in.Messages[0]
}

// reaction is one of a message of the history. Slack may leave out users, not their count.
type reaction struct {
	Name  string   `json:"name"`
	Users []string `json:"users"`
	Count int      `json:"count"`
}

// compareReactions notes the reactions that have no row, and those whose rows are of the past.
func (r *Reader) compareReactions(ctx context.Context, s *adapter.Shell, g *gathering, m *message, k known) {
	var all []reaction
	if len(m.Reactions) > 0 && json.Unmarshal(m.Reactions, &all) != nil {
		return
	}
	type added struct{ sender, content string }
	last := map[added]*msg.Message{}
	for _, row := range k.changes[m.TS] {
		if row.Verb == msg.VerbReaction {
			last[added{row.Sender, strings.TrimPrefix(row.Content, "-")}] = row
		}
	}
	own := k.posts[m.TS] != nil || m.User == r.Self().User
	for _, each := range all {
		content := emoji.FromName(each.Name)
		for _, user := range each.Users {
			key := added{msg.JID(r.Platform, user), content}
			row := last[key]
			delete(last, key)
			if user == r.Self().User || row != nil && row.Content == content {
				continue
			}
			if in, row := r.reacted(ctx, s, g, m, each.Name, user); row != nil {
				g.note(change{ts: m.TS, row: row, in: in, own: own})
			}
		}
		if each.Count > len(each.Users) { // others may have it still
			for key := range last {
				if key.content == content {
					delete(last, key)
				}
			}
		}
	}
	for key, row := range last {
		if row.Content == key.content {
			g.note(change{ts: m.TS, row: inbound.Unreacted(row, r.nowTS()), own: own})
		}
	}
}

// reacted converts a reaction of a user; the row is nil if it makes none.
func (r *Reader) reacted(ctx context.Context, s *adapter.Shell, g *gathering, m *message, name,
	user string) (in adapter.Inbound, row *msg.Message) {
	e := &inbound.Reaction{User: user, Name: name, EventTS: r.nowTS()}
	e.Item.Type, e.Item.Channel, e.Item.TS = "message", g.channel, m.TS
	decode := func() (err error) { in, err = r.Convert(ctx, &inbound.Event{Reaction: e}); return err }
	if !s.Decode("reaction to message "+m.TS+" of "+g.channel, decode) || len(in.Messages) != 1 {
		return in, nil
	}
	return in, inbound.Seen(in.Messages[0])
}

// note keeps a change.
func (g *gathering) note(c change) {
	if c.in.Messages == nil {
		c.in.Messages, c.own = []*msg.Message{c.row}, true
	}
	g.changes = append(g.changes, c)
}

// gatherVotes asks for the reactions to the open polls of a conversation that no page shows.
func (r *Reader) gatherVotes(ctx context.Context, s *adapter.Shell, g *gathering) error {
	polls, err := rows.PollsOpen(ctx, r.Store.Reader, r.Platform, rowsAtOnce)
	if err != nil {
		return err
	}
	asked := 0
	for _, poll := range polls {
		if poll.ChatJID != r.Platform+":"+g.channel || asked >= maxPolls {
			continue
		}
		row, err := r.Store.Message(ctx, poll.MessageID)
		if err != nil {
			return err
		}
		if row == nil || micros(row.PlatformID) == 0 || g.seen[micros(row.PlatformID)] {
			continue
		}
		asked++
		var raw json.RawMessage
		err = r.API.Patiently(ctx, func() (err error) {
			raw, err = r.API.Reactions(ctx, g.channel, row.PlatformID)
			return err
		})
		switch {
		case err != nil && slackapi.Failure(err).Class == msg.Permanent: // the poll is gone, or the scope is missing
			continue
		case err != nil:
			return err
		}
		if err := r.compare(ctx, s, g, g.decode(s, []json.RawMessage{raw})); err != nil {
			return err
		}
	}
	return nil
}

// storeChanges stores edits and deletions, which come before the messages that were missed, or reactions, which come
// after these: found are those that were stored just now.
func (r *Reader) storeChanges(ctx context.Context, s *adapter.Shell, g *gathering, reactions bool,
	found []message) (count int, err error) {
	fresh := map[string]bool{}
	for i := range found {
		fresh[found[i].TS] = true
	}
	slices.SortStableFunc(g.changes, func(one, other change) int { return strings.Compare(one.ts, other.ts) })
	for _, c := range g.changes {
		if reactions != (c.row.Verb == msg.VerbReaction) || !c.own && !fresh[c.ts] {
			continue
		}
		if reactions { // the event may have come meanwhile
			if last, err := r.lastReaction(ctx, c.row); err != nil || last != nil && last.Content == c.row.Content {
				continue
			}
		}
		if err := s.ReceiveAlways(ctx, c.in); err != nil {
			return count, err
		}
		count++
	}
	return count, nil
}

// lastReaction is the last row about the emoji of a user, nil if there is none.
func (r *Reader) lastReaction(ctx context.Context, row *msg.Message) (last *msg.Message, err error) {
	ids := inbound.ReactionsOf(row)
	rows, err := rows.Posts(ctx, r.Store.Reader, row.ChatJID, ids, strings.TrimSuffix(ids, ":")+";", rowsAtOnce)
	for _, other := range rows {
		if inbound.Reacted(other, row) && (last == nil || other.ID > last.ID) {
			last = other
		}
	}
	return last, err
}

// Shows reports whether a live reaction is one that the history has shown, or has shown to be over: Slack sends
// events again, and those that waited while the history was read come after it.
func (r *Reader) Shows(ctx context.Context, row *msg.Message) bool {
	last, err := r.lastReaction(ctx, row)
	return err == nil && last != nil && inbound.ShownAfter(last, row)
}

// nowTS is Slack's time as an id.
func (b *Bookmarks) nowTS() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return timestamp(b.slackNow().UnixMicro())
}
