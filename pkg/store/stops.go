package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"arizuko/pkg/msg"
)

// One commit of a /stop ends at most stopPage rows and as many turns. It ends
// sooner after maxStopTime, which is looked at every stopChunk: no other process
// writes meanwhile, and on a busy machine a statement takes ten times as long.
const (
	stopPage    = 500
	stopChunk   = 50
	maxStopTime = 50 * time.Millisecond
)

// Stop is a /stop that is carried out in pages: it covers the undecided rows of a
// chat below BeforeMessage, without those in Except, and its open turns up to
// ThroughTurn. It covers one conversation: in the web chat a topic, elsewhere a thread.
type Stop struct {
	ID            int64
	ChatJID       string
	Topic         *string // nil: of all topics
	Thread        *string // of the command's row, "" for what is in no thread; nil: of all threads
	By            string  // the command's sender
	Sender        *string // of the rows; nil: of all senders
	Turn          int64   // only this turn, and what groups do for it; 0: those of the conversation
	BeforeMessage int64
	ThroughTurn   int64
	AfterMessage  int64 // where the next page begins
	AfterTurn     int64
	Except        []int64 // rows that services decide
	CreatedAt     int64
}

// stopColumns has what the row of the command says: it is the first one that is not covered.
const stopColumns = `s.id, s.chat_jid, s.topic, s.sender, s.before_message, s.through_turn, s.after_message, s.after_turn, s.except_rows, s.created_at,
	CASE WHEN s.topic IS NULL THEN m.thread_id END, COALESCE(m.sender, '')`

func scanStop(scan scanner) (s Stop, err error) {
	var except []byte
	err = scan(&s.ID, &s.ChatJID, &s.Topic, &s.Sender, &s.BeforeMessage, &s.ThroughTurn, &s.AfterMessage, &s.AfterTurn,
		&except, &s.CreatedAt, &s.Thread, &s.By)
	if err == nil {
		err = json.Unmarshal(except, &s.Except)
	}
	return s, err
}

// Stops returns every /stop that is not carried out yet, oldest first.
func (r Reader) Stops(ctx context.Context) ([]Stop, error) {
	return collect(ctx, r, scanStop, queryStops)
}

// StopsOf returns those of a chat.
func (r Reader) StopsOf(ctx context.Context, chatJID string) ([]Stop, error) {
	return collect(ctx, r, scanStop, queryStopsOfChat, chatJID)
}

// CoversRow reports whether the /stop ends an undecided row of its chat, which is
// pinned to stickyTopic, "" for none.
func (s Stop) CoversRow(m *msg.Message, stickyTopic string) bool {
	return m.ID < s.BeforeMessage && !slices.Contains(s.Except, m.ID) && (s.Sender == nil || m.Sender == *s.Sender) &&
		(s.Thread == nil || m.ThreadID == *s.Thread) && (s.Topic == nil ||
		msg.EffectiveTopic(stickyTopic, m.Topic, "", "") == *s.Topic)
}

// StopChat ends what a chat has open, of any folder: undecided rows below s.BeforeMessage, without those in s.Except,
// are dropped, and turns cancelled. If s.Topic is not nil, only those of the topic; if s.Thread is not nil, only those
// of the thread; with each what groups do on its behalf; if s.Sender is not nil, only rows of that sender, but turns of
// all. With s.Turn that turn alone is cancelled, with what groups do for it, and no row of the chat is dropped. The
// caller sets these fields, By and ChatJID. Running turns are all cancelled at once, their runs take no more
// turns; of the rest this is the first page. more means that the rest is left to ContinueStop; until then it is not
// started. The cancelled turns are returned as they were.
func (tx *Tx) StopChat(s Stop, now int64) (cancelled []*msg.Turn, more bool, err error) {
	s.Except, s.CreatedAt = append([]int64{}, s.Except...), now
	if _, err := tx.find([]any{&s.ThroughTurn}, queryLastTurnID); err != nil {
		return nil, false, err
	}
	if cancelled, err = tx.stopRunning(s, now); err != nil {
		return nil, false, err
	}
	if err := tx.stopRequests(s, now); err != nil {
		return nil, false, err
	}
	if s.Turn != 0 {
		queued, err := tx.queuedTurn(s.Turn)
		if err == nil {
			queued, err = tx.cancelTurns(s, queued, now)
		}
		return append(cancelled, queued...), false, err
	}
	queued, more, err := tx.stopPage(&s, now)
	if err == nil && more {
		err = tx.putStop(s)
	}
	return append(cancelled, queued...), more, err
}

// queuedTurn returns a turn in a list, which is empty if the turn is not queued.
func (tx *Tx) queuedTurn(id int64) ([]*msg.Turn, error) {
	t, err := tx.Turn(uncancelled(), id)
	if err != nil || t == nil || t.State != msg.TurnQueued {
		return nil, err
	}
	return []*msg.Turn{t}, nil
}

func (tx *Tx) putStop(s Stop) error {
	except, err := json.Marshal(s.Except)
	if err != nil {
		return err
	}
	return tx.exec(insertStop, s.ChatJID, s.Topic, s.Sender, s.BeforeMessage, s.ThroughTurn, s.AfterMessage,
		s.AfterTurn, string(except), s.CreatedAt)
}

// ContinueStop ends the next page of what a /stop covers.
func (tx *Tx) ContinueStop(s Stop, now int64) (cancelled []*msg.Turn, more bool, err error) {
	cancelled, more, err = tx.stopPage(&s, now)
	switch {
	case err != nil:
	case more:
		err = tx.exec(updateStop, s.AfterMessage, s.AfterTurn, s.ID)
	default:
		err = tx.exec(deleteStop, s.ID)
	}
	return cancelled, more, err
}

// stoppedChats returns the chat's address and its former ones whose rows are still
// moved to it. Ids stay as they are, so one cursor serves for all of them.
func (tx *Tx) stoppedChats(s Stop) ([]string, error) {
	chats := []string{s.ChatJID}
	moving, err := collect(uncancelled(), tx.Reader, one[string], queryMoving)
	if err != nil {
		return nil, err
	}
	for _, former := range moving {
		if present, err := tx.Address(uncancelled(), former); err != nil {
			return nil, err
		} else if present == s.ChatJID && former != s.ChatJID {
			chats = append(chats, former)
		}
	}
	return chats, nil
}

// stopRunning cancels the running turns, and the open ones by which other groups work for the conversation.
func (tx *Tx) stopRunning(s Stop, now int64) ([]*msg.Turn, error) {
	chats, err := tx.stoppedChats(s)
	if err != nil {
		return nil, err
	}
	open, err := tx.queryTurns(uncancelled(), queryOpenBetween, maxBetween)
	if err != nil {
		return nil, err
	}
	for _, jid := range chats {
		turns, err := tx.queryTurns(uncancelled(), queryRunningOfChat, jid)
		if err != nil {
			return nil, err
		}
		open = append(open, turns...)
	}
	cancelled, err := tx.cancelTurns(s, open, now)
	for _, t := range cancelled {
		if err == nil && t.RunID != 0 {
			err = tx.DrainRun(t.RunID)
		}
	}
	return cancelled, err
}

// maxBetween bounds the turns and the undecided rows between groups that one /stop looks at. A request makes
// msg.MaxDelegations of them.
const maxBetween = 1000

// stopRequests drops the undecided rows by which groups ask and answer each other for the conversation.
func (tx *Tx) stopRequests(s Stop, now int64) error {
	rows, err := tx.messages(uncancelled(), queryUndecidedBetween, maxBetween)
	if err != nil {
		return err
	}
	for _, m := range rows {
		covered, err := tx.coversBehalf(&s, m)
		if err != nil {
			return err
		}
		if !covered {
			continue
		}
		if err := tx.Decide(m.ID, Decision{Disposition: msg.Dropped, Reason: msg.ReasonStopped, Topic: m.Topic,
			ThreadID: m.ThreadID}, now); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) stopPage(s *Stop, now int64) (cancelled []*msg.Turn, more bool, err error) {
	began := time.Now()
	chats, err := tx.stoppedChats(*s)
	if err != nil {
		return nil, false, err
	}
	moreRows, err := tx.stopRows(s, chats, now)
	if err != nil {
		return nil, false, err
	}
	var turns []*msg.Turn
	for _, jid := range chats {
		page, err := tx.queryTurns(uncancelled(), queryQueuedOfChat, jid, s.AfterTurn, s.ThroughTurn, stopPage+1)
		if err != nil {
			return nil, false, err
		}
		turns = append(turns, page...)
	}
	slices.SortFunc(turns, func(a, b *msg.Turn) int { return cmp.Compare(a.ID, b.ID) })
	left := len(turns)
	for chunk := range slices.Chunk(turns[:min(left, stopPage)], stopChunk) {
		some, err := tx.cancelTurns(*s, chunk, now)
		if err != nil {
			return nil, false, err
		}
		cancelled = append(cancelled, some...)
		left -= len(chunk)
		s.AfterTurn = chunk[len(chunk)-1].ID
		if time.Since(began) > maxStopTime {
			break
		}
	}
	return cancelled, moreRows || left > 0, nil
}

func (tx *Tx) cancelTurns(s Stop, turns []*msg.Turn, now int64) (cancelled []*msg.Turn, err error) {
	for _, t := range turns {
		covered, err := tx.covers(&s, t)
		if err != nil {
			return nil, err
		}
		if !covered {
			continue
		}
		half, err := tx.halfAnswer(&s, t, now)
		if err != nil {
			return nil, err
		}
		if err := tx.CancelTurn(t.ID, msg.ReasonCancelled, now); err != nil {
			return nil, err
		}
		if half != nil { // behind what CancelTurn withdraws
			if _, _, err := tx.PutMessage(half); err != nil {
				return nil, err
			}
		}
		if err := tx.MarkCancelled(t, s.By, now); err != nil {
			return nil, err
		}
		tx.pokeTyping(t)
		cancelled = append(cancelled, t)
	}
	return cancelled, nil
}

// stopRows drops a page of rows and reports whether more follow.
func (tx *Tx) stopRows(s *Stop, chats []string, now int64) (more bool, err error) {
	sticky, err := tx.stickyTopic(s.ChatJID)
	if err != nil {
		return false, err
	}
	var rows []msg.Message
	for _, jid := range chats {
		page, err := collect(uncancelled(), tx.Reader, func(scan scanner) (m msg.Message, err error) {
			err = scan(&m.ID, &m.Sender, &m.Topic, &m.ThreadID)
			return m, err
		}, queryStoppedRows, jid, s.AfterMessage, s.BeforeMessage, stopPage+1)
		if err != nil {
			return false, err
		}
		rows = append(rows, page...)
	}
	slices.SortFunc(rows, func(a, b msg.Message) int { return cmp.Compare(a.ID, b.ID) })
	began := time.Now()
	for i, m := range rows {
		if i == stopPage || i > 0 && i%stopChunk == 0 && time.Since(began) > maxStopTime {
			return true, nil
		}
		s.AfterMessage = m.ID
		if !s.CoversRow(&m, sticky) {
			continue
		}
		err := tx.Decide(m.ID, Decision{Disposition: msg.Dropped, Reason: msg.ReasonStopped, Topic: m.Topic,
			ThreadID: m.ThreadID}, now)
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

func (tx *Tx) stickyTopic(chatJID string) (string, error) {
	chat, err := tx.Chat(uncancelled(), chatJID)
	if err != nil || chat == nil {
		return "", err
	}
	return chat.StickyTopic, nil
}

// stopped reports whether a /stop that is not carried out yet covers a turn.
func (tx *Tx) stopped(t *msg.Turn) (bool, error) {
	present, err := tx.Address(uncancelled(), t.ChatJID) // its chat's /stop moves before its turns do
	if err != nil {
		return false, err
	}
	stops, err := tx.StopsOf(uncancelled(), present)
	if err != nil {
		return false, err
	}
	for _, s := range stops {
		if t.ID > s.ThroughTurn {
			continue
		}
		if covered, err := tx.covers(&s, t); err != nil || covered {
			return covered, err
		}
	}
	return false, nil
}

// covers reports whether a /stop ends a turn: one of its conversation, or one of another group that works for a turn of
// it.
func (tx *Tx) covers(s *Stop, t *msg.Turn) (bool, error) {
	if of, err := tx.ofConversation(s, t); err != nil || of || t.RootTurnID == 0 {
		return of, err
	}
	trigger, err := tx.Message(uncancelled(), t.TriggerMessageID)
	if err != nil {
		return false, err
	}
	return tx.coversBehalf(s, trigger)
}

// maxBehalf bounds how far back it is followed on whose behalf a turn works: each level of a request has its answer.
const maxBehalf = 2 * msg.MaxDelegationDepth

// coversBehalf reports whether an agent wrote a row between groups on behalf of a conversation that a /stop ends.
func (tx *Tx) coversBehalf(s *Stop, row *msg.Message) (bool, error) {
	for range maxBehalf {
		if row == nil || row.ForwardedFrom == nil || row.ForwardedFrom.Kind == msg.Injection {
			return false, nil
		}
		t, err := tx.Turn(uncancelled(), row.ForwardedFrom.TurnID)
		if err != nil || t == nil {
			return false, err
		}
		if of, err := tx.ofConversation(s, t); err != nil || of {
			return of, err
		}
		if row, err = tx.Message(uncancelled(), t.TriggerMessageID); err != nil {
			return false, err
		}
	}
	return false, nil
}

// ofConversation reports whether a turn is of the conversation that a /stop ends. One outside of threads also ends what
// the same user asked for there and is answered in a thread that begins at the question, as on Slack.
func (tx *Tx) ofConversation(s *Stop, t *msg.Turn) (bool, error) {
	present, err := tx.Address(uncancelled(), t.ChatJID)
	switch {
	case err != nil || present != s.ChatJID:
		return false, err
	case s.Turn != 0:
		return t.ID == s.Turn, nil
	case s.Topic != nil:
		return t.Topic == *s.Topic, nil
	case s.Thread == nil || t.ThreadID == *s.Thread:
		return true, nil
	case *s.Thread != "":
		return false, nil
	}
	asked, err := tx.Message(uncancelled(), t.TriggerMessageID)
	return asked != nil && asked.PlatformID == t.ThreadID && asked.Sender == s.By, err
}

// DrainRun keeps a run from getting further turns.
func (tx *Tx) DrainRun(runID int64) error {
	tx.pokePeers()
	return tx.exec(updateDrain, runID)
}

// DrainIdleRun does so if the run has no turn, and reports whether it did.
func (tx *Tx) DrainIdleRun(runID int64) (bool, error) {
	tx.pokePeers()
	n, err := tx.change(updateDrainIdle, runID)
	return n > 0, err
}
