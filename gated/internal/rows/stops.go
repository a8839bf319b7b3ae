package rows

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	adapterrows "arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// One commit of a /stop ends at most stopPage rows and as many turns. It ends
// sooner after maxStopTime, which is looked at every stopChunk: no other process
// writes meanwhile, and on a busy machine a statement takes ten times as long.
const (
	stopPage    = 200
	stopChunk   = 10
	maxStopTime = 20 * time.Millisecond
	// maxOwn is how many turns of a chat are looked at for those of one sender, most of which belong to others.
	maxOwn = 2000
)

// Stop is a /stop that is carried out in pages: it covers the undecided rows of a
// chat below BeforeMessage, without those in Except, and its open turns up to
// ThroughTurn. It covers one conversation: in the web chat a topic, elsewhere a thread.
type Stop struct {
	ID            int64
	ChatJID       string
	Topic         *string // nil: of all topics
	Thread        *string // of the command's row, "" for no thread; nil: of all threads
	By            string  // the command's sender
	Sender        *string // of the rows; nil: of all senders
	Own           bool    // of the turns only those that By has asked for, which are all ended at once
	Turn          int64   // only this turn, and the work of groups for it; 0: those of the conversation
	BeforeMessage int64
	ThroughTurn   int64
	AfterMessage  int64 // where the next page begins
	AfterTurn     int64
	Except        []int64 // rows that services decide
	CreatedAt     int64
}

func scanStop(scan store.Scan) (s Stop, err error) {
	var except []byte
	err = scan(&s.ID, &s.ChatJID, &s.Topic, &s.Sender, &s.BeforeMessage, &s.ThroughTurn, &s.AfterMessage, &s.AfterTurn,
		&except, &s.CreatedAt, &s.Thread, &s.By)
	if err == nil {
		err = json.Unmarshal(except, &s.Except)
	}
	return s, err
}

// Stops returns the /stops of a chat, or with "" of all, that are not carried out yet, oldest first.
func Stops(ctx context.Context, r store.Reader, chatJID string) ([]Stop, error) {
	// The row of the command, the first one that is not covered, has the thread and the sender.
	const query = `SELECT s.id, s.chat_jid, s.topic, s.sender, s.before_message, s.through_turn, s.after_message,
		s.after_turn, s.except_rows, s.created_at, CASE WHEN s.topic IS NULL THEN m.thread_id END, COALESCE(m.sender, '')
		FROM stops s LEFT JOIN messages m ON m.id = s.before_message WHERE ?1 = '' OR s.chat_jid = ?1 ORDER BY s.id`
	return store.All(ctx, r, scanStop, query, chatJID)
}

// CoversRow reports whether the /stop ends an undecided row of its chat, which is
// pinned to stickyTopic, "" for none.
func (s Stop) CoversRow(m *msg.Message, stickyTopic string) bool {
	return m.ID < s.BeforeMessage && !slices.Contains(s.Except, m.ID) && (s.Sender == nil || m.Sender == *s.Sender) &&
		(s.Thread == nil || m.ThreadID == *s.Thread) && (s.Topic == nil ||
		msg.EffectiveTopic(stickyTopic, m.Topic, "", "") == *s.Topic)
}

// StopChat ends the open work of a chat, of any folder: it drops undecided rows below s.BeforeMessage, without those in
// s.Except, and cancels turns. If s.Topic is not nil, only those of the topic; if s.Thread is not nil, only those of
// the thread; with each the work of groups on its behalf; if s.Sender is not nil, only rows of that sender, but turns
// of all. With s.Turn it cancels that turn alone, with the work of groups for it, and drops no row of the chat. The
// caller sets these fields, Own, By and ChatJID. Running turns are all cancelled at once, their runs take no more
// turns; of the rest this is the first page. more means that the rest is left to ContinueStop; until then it is not
// started. The cancelled turns are returned as they were.
func StopChat(tx *store.Tx, s Stop, now int64) (cancelled []*msg.Turn, more bool, err error) {
	s.Except, s.CreatedAt = append([]int64{}, s.Except...), now
	if _, err := tx.Find([]any{&s.ThroughTurn}, `SELECT ifnull(max(id), 0) FROM turns`); err != nil {
		return nil, false, err
	}
	if cancelled, err = stopRunning(tx, s, now); err != nil {
		return nil, false, err
	}
	if err := stopRequests(tx, s, now); err != nil {
		return nil, false, err
	}
	if s.Turn != 0 {
		queued, err := queuedOf(tx, s.Turn)
		if err == nil {
			queued, err = cancelTurns(tx, s, queued, now)
		}
		return append(cancelled, queued...), false, err
	}
	queued, more, err := stopSome(tx, &s, now)
	if err == nil && more {
		if s.Own { // pages, which do not know it, go on with the rows
			s.ThroughTurn = 0
		}
		err = putStop(tx, s)
	}
	return append(cancelled, queued...), more, err
}

// queuedOf returns a turn and those of its chain that are queued, as for an answer of a group that it asked.
func queuedOf(tx *store.Tx, id int64) ([]*msg.Turn, error) {
	const query = `SELECT ` + store.TurnColumns + ` FROM turns t WHERE t.state = 'queued' AND t.id IN (SELECT o.id FROM turns o WHERE o.id = ?1 UNION ALL
		SELECT c.id FROM turns o JOIN turns c INDEXED BY turns_root ON c.root_turn_id = ifnull(o.root_turn_id, o.id) WHERE o.id = ?1) ORDER BY t.id`
	return tx.ReadTurns(store.Uncancelled(), query, id)
}

func putStop(tx *store.Tx, s Stop) error {
	const query = `INSERT INTO stops (chat_jid, topic, sender, before_message, through_turn, after_message, after_turn, except_rows, created_at) VALUES (?,?,?,?,?,?,?,?,?)`
	except, err := json.Marshal(s.Except)
	if err != nil {
		return err
	}
	return tx.Exec(query, s.ChatJID, s.Topic, s.Sender, s.BeforeMessage, s.ThroughTurn, s.AfterMessage,
		s.AfterTurn, string(except), s.CreatedAt)
}

// ContinueStop ends the next page of a /stop.
func ContinueStop(tx *store.Tx, s Stop, now int64) (cancelled []*msg.Turn, more bool, err error) {
	const query = `UPDATE stops SET after_message = ?, after_turn = ? WHERE id = ?`
	cancelled, more, err = stopSome(tx, &s, now)
	switch {
	case err != nil:
	case more:
		err = tx.Exec(query, s.AfterMessage, s.AfterTurn, s.ID)
	default:
		err = tx.Exec(`DELETE FROM stops WHERE id = ?`, s.ID)
	}
	return cancelled, more, err
}

// stoppedChats returns the chat's address and its former ones whose rows are still
// moved to it. Ids stay as they are, so one cursor serves for all of them.
func stoppedChats(tx *store.Tx, s Stop) ([]string, error) {
	const query = `SELECT old_jid FROM chat_aliases INDEXED BY chat_aliases_moving WHERE moving = 1`
	chats := []string{s.ChatJID}
	moving, err := store.All(store.Uncancelled(), tx.Reader, store.One[string], query)
	if err != nil {
		return nil, err
	}
	for _, former := range moving {
		if present, err := tx.Address(store.Uncancelled(), former); err != nil {
			return nil, err
		} else if present == s.ChatJID && former != s.ChatJID {
			chats = append(chats, former)
		}
	}
	return chats, nil
}

// stopRunning cancels the running turns, and the open ones by which other groups work for the conversation.
func stopRunning(tx *store.Tx, s Stop, now int64) ([]*msg.Turn, error) {
	const queryRunningOfChat = `SELECT ` + store.TurnColumns +
		` FROM turns t INDEXED BY turns_run WHERE t.state = 'running' AND t.chat_jid = ? ORDER BY t.id`
	// Between groups, ';' comes after ':'.
	const queryOpenBetween = `SELECT ` + store.TurnColumns +
		` FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running')
		AND t.chat_jid >= 'group:' AND t.chat_jid < 'group;' LIMIT ?+0`
	chats, err := stoppedChats(tx, s)
	if err != nil {
		return nil, err
	}
	open, err := tx.ReadTurns(store.Uncancelled(), queryOpenBetween, maxBetween)
	if err != nil {
		return nil, err
	}
	for _, jid := range chats {
		turns, err := tx.ReadTurns(store.Uncancelled(), queryRunningOfChat, jid)
		if err != nil {
			return nil, err
		}
		open = append(open, turns...)
	}
	cancelled, err := cancelTurns(tx, s, open, now)
	for _, t := range cancelled {
		if err == nil && t.RunID != 0 {
			err = DrainRun(tx, t.RunID)
		}
	}
	return cancelled, err
}

// maxBetween bounds the turns and the undecided rows between groups that one /stop looks at. A request makes
// msg.MaxDelegations of them.
const maxBetween = 1000

// stopRequests drops the undecided rows by which groups ask and answer each other for the conversation.
func stopRequests(tx *store.Tx, s Stop, now int64) error {
	const query = `SELECT ` + store.MessageColumns + ` FROM messages m INDEXED BY messages_undecided
		WHERE m.direction = 'in' AND m.disposition IS NULL AND m.chat_jid >= 'group:' AND m.chat_jid < 'group;' LIMIT ?+0`
	rows, err := tx.Messages(store.Uncancelled(), query, maxBetween)
	if err != nil {
		return err
	}
	for _, m := range rows {
		covered, err := coversBehalf(tx, &s, m)
		if err != nil {
			return err
		}
		if !covered {
			continue
		}
		if err := tx.Decide(m.ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonStopped, Topic: m.Topic,
			ThreadID: m.ThreadID, ReceivedAt: m.ReceivedAt}, now); err != nil {
			return err
		}
	}
	return nil
}

func stopSome(tx *store.Tx, s *Stop, now int64) (cancelled []*msg.Turn, more bool, err error) {
	const query = `SELECT ` + store.TurnColumns +
		` FROM turns t INDEXED BY turns_open WHERE t.state IN ('queued', 'running')
		AND t.state = 'queued' AND t.chat_jid = ? AND t.id > ? AND t.id <= ? ORDER BY t.id LIMIT ?+0`
	began := time.Now()
	chats, err := stoppedChats(tx, *s)
	if err != nil {
		return nil, false, err
	}
	moreRows, err := stopRows(tx, s, chats, began, now)
	if err != nil {
		return nil, false, err
	}
	var turns []*msg.Turn
	limit := stopPage
	if s.Own {
		limit = maxOwn
	}
	for _, jid := range chats {
		page, err := tx.ReadTurns(store.Uncancelled(), query, jid, s.AfterTurn, s.ThroughTurn, limit+1)
		if err != nil {
			return nil, false, err
		}
		turns = append(turns, page...)
	}
	slices.SortFunc(turns, func(a, b *msg.Turn) int { return cmp.Compare(a.ID, b.ID) })
	left := len(turns)
	for chunk := range slices.Chunk(turns[:min(left, limit)], stopChunk) {
		some, err := cancelTurns(tx, *s, chunk, now)
		if err != nil {
			return nil, false, err
		}
		cancelled = append(cancelled, some...)
		left -= len(chunk)
		s.AfterTurn = chunk[len(chunk)-1].ID
		if time.Since(began) > maxStopTime && !s.Own {
			break
		}
	}
	return cancelled, moreRows || left > 0 && !s.Own, nil
}

func cancelTurns(tx *store.Tx, s Stop, turns []*msg.Turn, now int64) (cancelled []*msg.Turn, err error) {
	for _, t := range turns {
		covered, err := covers(tx, &s, t)
		if err != nil {
			return nil, err
		}
		if !covered {
			continue
		}
		half, err := halfAnswer(tx, &s, t, now)
		if err != nil {
			return nil, err
		}
		if err := cancelTurn(tx, t, msg.ReasonCancelled, now); err != nil {
			return nil, err
		}
		if half != nil { // after the rows that CancelTurn withdraws
			if _, _, err := tx.PutMessage(half); err != nil {
				return nil, err
			}
		}
		if err := tx.MarkCancelled(t, s.By, now); err != nil {
			return nil, err
		}
		pokeTyping(tx, t)
		cancelled = append(cancelled, t)
	}
	return cancelled, nil
}

// stopRows drops a page of rows and reports whether more follow.
func stopRows(tx *store.Tx, s *Stop, chats []string, began time.Time, now int64) (more bool, err error) {
	const query = `SELECT m.id, m.sender, m.topic, m.thread_id FROM messages m INDEXED BY messages_undecided
		WHERE m.direction = 'in' AND m.disposition IS NULL AND m.chat_jid = ? AND m.id > ? AND m.id < ? ORDER BY m.id LIMIT ?+0`
	sticky, err := stickyTopic(tx, s.ChatJID)
	if err != nil {
		return false, err
	}
	var rows []msg.Message
	for _, jid := range chats {
		page, err := store.All(store.Uncancelled(), tx.Reader, func(scan store.Scan) (m msg.Message, err error) {
			err = scan(&m.ID, &m.Sender, &m.Topic, &m.ThreadID)
			return m, err
		}, query, jid, s.AfterMessage, s.BeforeMessage, stopPage+1)
		if err != nil {
			return false, err
		}
		rows = append(rows, page...)
	}
	slices.SortFunc(rows, func(a, b msg.Message) int { return cmp.Compare(a.ID, b.ID) })
	for i, m := range rows {
		if i == stopPage || i > 0 && i%stopChunk == 0 && time.Since(began) > maxStopTime {
			return true, nil
		}
		s.AfterMessage = m.ID
		if !s.CoversRow(&m, sticky) {
			continue
		}
		err := tx.Decide(m.ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonStopped, Topic: m.Topic,
			ThreadID: m.ThreadID, ReceivedAt: m.ReceivedAt}, now)
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

func stickyTopic(tx *store.Tx, chatJID string) (string, error) {
	chat, err := tx.Chat(store.Uncancelled(), chatJID)
	if err != nil || chat == nil {
		return "", err
	}
	return chat.StickyTopic, nil
}

// stopped reports whether a /stop that is not carried out yet covers a turn.
func stopped(tx *store.Tx, t *msg.Turn) (bool, error) {
	present, err := tx.Address(store.Uncancelled(), t.ChatJID) // its chat's /stop moves before its turns do
	if err != nil {
		return false, err
	}
	stops, err := Stops(store.Uncancelled(), tx.Reader, present)
	if err != nil {
		return false, err
	}
	for _, s := range stops {
		if t.ID > s.ThroughTurn {
			continue
		}
		if covered, err := covers(tx, &s, t); err != nil || covered {
			return covered, err
		}
	}
	return false, nil
}

// covers reports whether a /stop ends a turn: one of its conversation, or one of another group that works for a turn of
// it.
func covers(tx *store.Tx, s *Stop, t *msg.Turn) (bool, error) {
	if of, err := ofConversation(tx, s, t); err != nil || of || t.RootTurnID == 0 {
		return of, err
	}
	trigger, err := tx.Message(store.Uncancelled(), t.TriggerMessageID)
	if err != nil {
		return false, err
	}
	return coversBehalf(tx, s, trigger)
}

// maxBehalf bounds how far back it is followed on whose behalf a turn works: each level of a request has its answer.
const maxBehalf = 2 * msg.MaxDelegationDepth

// coversBehalf reports whether an agent wrote a row between groups on behalf of a conversation that a /stop ends.
func coversBehalf(tx *store.Tx, s *Stop, row *msg.Message) (bool, error) {
	for range maxBehalf {
		if row == nil || row.ForwardedFrom == nil || row.ForwardedFrom.Kind == msg.Injection {
			return false, nil
		}
		t, err := tx.Turn(store.Uncancelled(), row.ForwardedFrom.TurnID)
		if err != nil || t == nil {
			return false, err
		}
		if of, err := ofConversation(tx, s, t); err != nil || of {
			return of, err
		}
		if row, err = tx.Message(store.Uncancelled(), t.TriggerMessageID); err != nil {
			return false, err
		}
	}
	return false, nil
}

// ofConversation reports whether a turn is of the conversation that a /stop ends. One outside of threads also ends
// questions of the same user there that are answered in a thread of their own, as on Slack.
func ofConversation(tx *store.Tx, s *Stop, t *msg.Turn) (bool, error) {
	present, err := tx.Address(store.Uncancelled(), t.ChatJID)
	switch {
	case err != nil || present != s.ChatJID:
		return false, err
	case s.Own:
		asked, err := tx.Message(store.Uncancelled(), t.TriggerMessageID)
		if err != nil || asked == nil || asked.Payer() != s.By {
			return false, err
		}
	}
	switch {
	case s.Turn != 0:
		return t.ID == s.Turn, nil
	case s.Topic != nil:
		return t.Topic == *s.Topic, nil
	case s.Thread == nil || t.ThreadID == *s.Thread:
		return true, nil
	case *s.Thread != "":
		return false, nil
	}
	asked, err := tx.Message(store.Uncancelled(), t.TriggerMessageID)
	return asked != nil && asked.PlatformID == t.ThreadID && asked.Sender == s.By, err
}

// CancelReplies cancels the replies of a turn that are still queued.
func CancelReplies(tx *store.Tx, turnID int64) error {
	const query = `UPDATE messages SET out_state = 'cancelled'
		WHERE turn_id = ? AND direction = 'out' AND out_state = 'queued'`
	return tx.Exec(query, turnID)
}

// StopParked drops the parked rows of a thread of a chat below before, those of one sender or, with nil, of all.
func StopParked(tx *store.Tx, chatJID, thread string, sender *string, before, now int64) error {
	chats, err := stoppedChats(tx, Stop{ChatJID: chatJID})
	if err != nil {
		return err
	}
	for _, jid := range chats {
		rows, err := Parked(store.Uncancelled(), tx.Reader, jid, math.MaxInt64)
		if err != nil {
			return err
		}
		for _, m := range rows {
			if m.ID >= before || m.ThreadID != thread || sender != nil && m.Sender != *sender {
				continue
			}
			if err := dropParked(tx, m.ID, msg.ReasonStopped, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// halfAnswer is the row that keeps the part of an answer that users have seen, of a turn that a /stop is going to
// cancel, and says who stopped it; nil if they have seen nothing. It takes the place of the preview.
func halfAnswer(tx *store.Tx, s *Stop, t *msg.Turn, now int64) (*msg.Message, error) {
	if s.By == "" || t.State != msg.TurnRunning {
		return nil, nil
	}
	p, err := tx.Progress(store.Uncancelled(), t.ID)
	if err != nil || p == nil || strings.TrimSpace(p.Text) == "" {
		return nil, err
	}
	shown, err := adapterrows.TurnPreview(store.Uncancelled(), tx.Reader, t.ID)
	if err != nil || shown == nil || !shown.Running {
		return nil, err
	}
	if platform, _ := msg.SplitJID(t.ChatJID); platform != msg.PlatformWeb && // which has no previews to store
		(shown.Mode != msg.PreviewText || shown.PlatformID == "" || shown.Ending) {
		return nil, nil
	}
	by, err := tx.Message(store.Uncancelled(), s.BeforeMessage)
	if err != nil {
		return nil, err
	}
	name := s.By
	if by != nil {
		name = cmp.Or(by.SenderName, name)
	}
	text := strings.TrimSpace(p.Text)
	if strings.Count(text, "```")%2 == 1 { // it may end anywhere
		text += "\n```"
	}
	return &msg.Message{
		ChatJID: t.ChatJID, ThreadID: t.ThreadID, Topic: t.Topic, Direction: msg.Out, IsBot: true,
		Sender: msg.AgentSender(t.Folder), Content: text + "\n\n*Stopped by " + msg.EscapeLine(name) + ".*",
		ReplyToID: shown.ReplyTo, TurnID: t.ID, Timestamp: now, ReceivedAt: now, Source: msg.SourceNotice,
		OutState: msg.OutStateOf(t.ChatJID),
	}, nil
}
