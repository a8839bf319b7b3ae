package gateway

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"arizuko/gated/internal/codes"
	"arizuko/gated/internal/deciding/decide"
	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/undo"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// plan has the effects of a step on one chat, which are stored together or not at all,
// and acted on once they are.
type plan struct {
	cfg     *Config
	batch   *batch
	next    decide.State
	effects []decide.Effect
	err     error
	at      int64 // the row whose effect is being stored, then the one that failed

	// The results of write, for dispatch.
	turns  []storedTurn
	drains []int64 // runs whose session was reset or is taken back, 0 for a topic without one
	stops  bool
	// cancelled are the turns of those stops, as they were before.
	cancelled []*msg.Turn
	changed   []*msg.Turn // turns whose messages were edited or deleted, as they were before
}

type storedTurn struct {
	turn    *msg.Turn
	rows    []int64 // of derived rows their own ids
	reasons []msg.Reason
}

// stores reports whether the plan has anything to store.
func (p *plan) stores() bool {
	for _, e := range p.effects {
		switch e.(type) {
		case decide.Hold, decide.Wait, decide.AskService, decide.OpenRequest:
		default:
			return true
		}
	}
	return false
}

// decides reports whether the plan gives a row its disposition.
func (p *plan) decides(row int64) bool {
	return slices.ContainsFunc(p.effects, func(e decide.Effect) bool {
		switch e := e.(type) {
		case decide.Decide:
			return e.Row == row
		case decide.StoreTurn:
			return slices.ContainsFunc(e.Entries, func(entry decide.Entry) bool { return entry.Row == row })
		}
		return false
	})
}

func (p *plan) write(tx *store.Tx) error {
	p.turns, p.drains, p.stops, p.cancelled, p.changed = nil, nil, false, nil, nil // it may be the second time
	for _, e := range p.effects {
		if row := e.Of(); row != 0 {
			p.at = row
		}
		if err := p.apply(tx, e); err != nil {
			return err
		}
		if err := p.settle(tx); err != nil {
			return err
		}
	}
	return nil
}

// settle makes the server say now whether it takes what was stored, once the chat has had a failure: then p.at is the
// row to blame.
func (p *plan) settle(tx *store.Tx) error {
	if p.batch.chat.failures == 0 {
		return nil
	}
	return tx.Settle()
}

// apply stores one effect, if it has anything to store.
func (p *plan) apply(tx *store.Tx, e decide.Effect) error {
	now, chat := p.batch.Now, p.batch.Chat.JID
	switch e := e.(type) {
	case decide.EnsureChat:
		return tx.EnsureChat(e.Chat, now)
	case decide.Decide:
		return tx.Decide(e.Row, p.decision(&e), now)
	case decide.Reply:
		_, _, err := tx.PutMessage(replyMessage(p.row(e.Row), e.Source, e.Text, now))
		return err
	case decide.StoreTurn:
		return p.storeTurn(tx, &e)
	case decide.BindThread:
		return rows.BindThread(tx, e.Chat, e.ThreadID, e.Topic)
	case decide.PinTopic:
		return rows.PinTopic(tx, chat, e.Topic)
	case decide.PinGroup:
		return rows.PinGroup(tx, chat, e.Folder, e.At)
	case decide.ResetSession:
		return p.resetSession(tx, &e)
	case decide.UndoTurn:
		return p.undoTurn(tx, &e)
	case decide.StopChat:
		return p.stopChat(tx, &e)
	case decide.StopTurn:
		return p.stop(tx, rows.Stop{ChatJID: chat, By: e.Sender, Turn: e.Turn, Own: e.Own})
	case decide.StopParked:
		return rows.StopParked(tx, chat, e.ThreadID, some(e.Sender), e.Row, now)
	case decide.CountVote:
		m := p.row(e.Row)
		return rows.Vote(tx, e.Poll, m.Sender, m.SenderName, &e.Vote, m.CastAt())
	case decide.EndPoll:
		return p.endPoll(tx, &e)
	case decide.AnswerAsk:
		m := p.row(e.Row)
		return rows.AnswerAsk(tx, e.Ask, e.Option, m.Sender, m.SenderName, m.ReceivedAt, now)
	case decide.ReplaceContent:
		return rows.ReplaceContent(tx, e.Target, e.Content, e.Addressed, e.Verb)
	case decide.ReplaceFiles:
		edit := p.row(e.Row)
		return tx.ReplaceFiles(e.Target, edit.Attachments, edit.PendingFiles)
	case decide.SupersedeNotes:
		return rows.SupersedeNotes(tx, chat, e.Target)
	case decide.TakeBack:
		return p.takeBack(tx, &e)
	case decide.EndObjects:
		return p.endObjects(tx, &e)
	case decide.AddOperator:
		return rows.AddOperator(tx, p.row(e.Row).Sender, e.Hash, now)
	case decide.NoteWrongCode:
		return rows.NoteWrongOperatorCode(tx, p.row(e.Row).Sender, codes.MaxTries)
	case decide.EndCode:
		return rows.EndOperatorCode(tx)
	case decide.TakeUpParked:
		return rows.TakeUp(tx, chat, now)
	case decide.TakeUpRow:
		return rows.TakeUpRow(tx, e.Row)
	case decide.DropParked:
		return rows.DropParked(tx, chat, e.Reason, now)
	}
	return nil
}

func (p *plan) decision(e *decide.Decide) store.Decision {
	d := store.Decision{
		Disposition: e.Disposition, Reason: e.Reason, RoutedTo: e.RoutedTo, Topic: e.Topic, ThreadID: e.ThreadID,
		Error: e.Error,
	}
	if r := p.find(e.Row); r != nil { // else it is of a pass before, as the target of an edit
		d.ReceivedAt = r.ReceivedAt
	}
	return d
}

func (p *plan) resetSession(tx *store.Tx, e *decide.ResetSession) error {
	run, err := rows.ResetSession(tx, e.Folder, e.Topic, p.batch.Now)
	if run != 0 {
		p.drains = append(p.drains, run)
	}
	return err
}

// undoTurn asks for a turn to be taken back, or says why it cannot be.
func (p *plan) undoTurn(tx *store.Tx, e *decide.UndoTurn) error {
	_, run, refusal, err := undo.Ask(tx, undo.Request{
		Folder: e.Folder, Topic: e.Topic, Turn: e.Turn, Redo: e.Redo, Rest: e.Rest, ChatJID: p.batch.Chat.JID,
		Message: e.Row, By: e.By, Operator: e.Operator,
	}, p.batch.Now)
	switch {
	case err != nil:
		return err
	case refusal == "":
		p.drains = append(p.drains, run)
		return nil
	}
	_, _, err = tx.PutMessage(replyMessage(p.row(e.Row), msg.SourceCommand, refusal, p.batch.Now))
	return err
}

func (p *plan) takeBack(tx *store.Tx, e *decide.TakeBack) error {
	before, err := rows.TakeBack(tx, e.Takeback, p.batch.Now)
	if before != nil {
		p.changed = append(p.changed, before)
	}
	return err
}

// endPoll closes a poll as its platform has.
func (p *plan) endPoll(tx *store.Tx, e *decide.EndPoll) error {
	at := p.row(e.Row).ReceivedAt
	if err := rows.EndPoll(tx, e.Poll, e.Result, at); err != nil || p.cfg.Objects == nil {
		return err
	}
	return p.cfg.Objects.ClosePoll(tx, p.batch.Chat.JID, e.Poll, at, p.cfg.Now().UnixMilli())
}

func (p *plan) endObjects(tx *store.Tx, e *decide.EndObjects) error {
	for _, id := range e.Messages {
		if err := rows.EndAskOf(tx, id, p.batch.Now); err != nil {
			return err
		}
	}
	if p.cfg.Objects == nil {
		return nil
	}
	for _, id := range e.Messages {
		if err := p.cfg.Objects.EndOf(tx, p.batch.Chat.JID, id); err != nil {
			return err
		}
	}
	return nil
}

// maxFileWait is how long a turn waits for the attachments of its rows, in ms.
const maxFileWait = 60_000

// storeTurn stores derived rows, the turn, and each row's decision, and asks for the
// attachments that are still to be downloaded.
func (p *plan) storeTurn(tx *store.Tx, e *decide.StoreTurn) error {
	turn := e.Turn
	ids := make([]int64, len(e.Entries))
	audio := &transcripts{tx: tx, folder: turn.Folder}
	turn.RowCount = len(e.Entries)
	for i, entry := range e.Entries {
		p.at, ids[i] = entry.Row, entry.Row
		turn.RowBytes += len(p.row(entry.Row).Content)
		answered, err := p.answeredFiles(tx, &turn, p.row(entry.Row), audio)
		if err != nil {
			return err
		}
		if wanted := audio.wants(p.row(entry.Row)); wanted || entry.Files || answered {
			turn.WaitsFor, turn.NotBefore = msg.WaitsFiles, p.batch.Now+maxFileWait
		}
		if entry.Derive.Source != "" {
			m := derived(p.row(entry.Row), entry.Derive)
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
			ids[i] = m.ID
		}
	}
	if e.Entries[0].Reason == msg.ReasonReset {
		turn.RowCount = 0 // it shares no turn with rows before /new
	}
	p.at, turn.TriggerMessageID = e.Entries[e.Trigger].Row, ids[e.Trigger]
	if _, err := rows.PutTurn(tx, &turn, p.cfg.MaxAgents); err != nil {
		return err
	}
	if err := audio.store(e.Entries, ids, p, &turn); err != nil {
		return err
	}
	stored := storedTurn{turn: &turn, rows: ids}
	for _, entry := range e.Entries {
		stored.reasons = append(stored.reasons, entry.Reason)
	}
	p.turns = append(p.turns, stored)
	for i, entry := range e.Entries {
		p.at = entry.Row
		err := tx.Decide(ids[i], store.Decision{
			Disposition: msg.Routed, Reason: entry.Reason, RoutedTo: turn.Folder, TurnID: turn.ID, Topic: entry.Topic,
			ThreadID: entry.ThreadID, ReceivedAt: p.row(entry.Row).ReceivedAt,
		}, p.batch.Now)
		if err == nil && entry.Files {
			err = rows.WantFiles(tx, ids[i])
		}
		if err == nil {
			err = p.settle(tx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// answeredFiles asks for the attachments of the post that a row answers: the agent sees the post with the row. It
// reports whether there are any to wait for. Those of posts that other groups got are left alone.
func (p *plan) answeredFiles(tx *store.Tx, turn *msg.Turn, m *msg.Message, audio *transcripts) (wanted bool,
	err error) {
	if m.ReplyToID == "" {
		return false, nil
	}
	post, err := tx.MessageByPlatformID(context.Background(), m.ChatJID, m.ReplyToID)
	if err != nil || post == nil || !post.FilesFor(turn.Folder) {
		return false, err
	}
	if audio.wants(post) {
		wanted, audio.posts = true, append(audio.posts, post)
	}
	if post.PendingFiles == 0 {
		return wanted, nil
	}
	return true, rows.WantFiles(tx, post.ID)
}

func (p *plan) row(id int64) *msg.Message { return p.facts(id).Message }

// facts returns the facts about a row that an effect names.
func (p *plan) facts(id int64) *decide.Row {
	if r := p.find(id); r != nil {
		return r
	}
	panic(fmt.Sprintf("an effect names row %d, which was not read", id))
}

// find returns the facts about a row, nil if it was not read.
func (p *plan) find(id int64) *decide.Row {
	for i := range p.batch.Rows {
		if p.batch.Rows[i].ID == id {
			return &p.batch.Rows[i]
		}
	}
	return nil
}

// replyMessage is the gateway's own reply to a row.
func replyMessage(m *msg.Message, source, text string, now int64) *msg.Message {
	return &msg.Message{
		ChatJID: m.ChatJID, Direction: msg.Out, IsBot: true, Content: text, ReplyToID: m.PlatformID,
		Topic: msg.Place(m.ThreadID, m.Topic), ThreadID: m.ThreadID, Timestamp: now, ReceivedAt: now,
		Source: source, OutState: msg.OutStateOf(m.ChatJID),
	}
}

// derived is a row made from another. It carries that one's attachments.
func derived(m *msg.Message, d decide.Derive) *msg.Message {
	return &msg.Message{
		ChatJID: m.ChatJID, Direction: msg.In, Sender: m.Sender, SenderName: m.SenderName, IsBot: m.IsBot,
		Verb: m.Verb, Content: d.Text, Attachments: m.Attachments, PendingFiles: m.PendingFiles, Topic: d.Topic,
		ThreadID:  m.ThreadID,
		ReplyToID: m.ReplyToID, TargetID: m.TargetID, Addressed: m.Addressed, Quote: m.Quote, OnBehalfOf: m.OnBehalfOf,
		Timestamp: m.Timestamp, ReceivedAt: m.ReceivedAt, Source: d.Source, DerivedFrom: m.ID,
	}
}

// afterCommit acts on stored effects. A panic in it costs nothing that is not found
// again among the rows.
func (g *Gateway) afterCommit(ctx context.Context, p *plan) {
	defer func() {
		if cause := recover(); cause != nil {
			g.log.Error("panic after decisions were stored; the next sweep repeats what is missing",
				"chat", p.batch.Chat.JID, "panic", cause, "stack", string(debug.Stack()))
		}
	}()
	chat := p.batch.Chat.JID
	for _, e := range p.effects {
		switch e := e.(type) {
		case decide.Decide:
			g.log.decided(e.Row, chat, e.Disposition, e.Reason, e.RoutedTo, 0)
			g.meter.decided.WithLabelValues(string(e.Disposition), string(e.Reason)).Inc()
			if e.Reason == msg.ReasonBadRow {
				g.log.Error("row dropped: it cannot be handled", "row", e.Row, "chat", chat, "err", e.Error)
			}
		case decide.StoreTurn:
			for _, entry := range e.Entries {
				g.meter.decided.WithLabelValues(string(msg.Routed), string(entry.Reason)).Inc()
			}
		case decide.AskService:
			g.calls.add(ctx, p.batch.chat, e)
		case decide.Hold:
			g.log.held(chat, &e)
		case decide.Wait:
			g.log.waiting(chat, &e)
		case decide.EndObjects:
			g.agents.AskEnded() // a message that was deleted may have shown a question
		case decide.AnswerAsk:
			g.log.Info("question answered", "ask", e.Ask, "row", e.Row, "chat", chat, "option", e.Option)
			g.agents.AskEnded()
			if e.Revives {
				g.agents.Revived()
			}
		case decide.OpenRequest:
			g.requests.open(chat, e.Row)
		case decide.TakeUpParked:
			g.log.Info("parked messages are decided again", "chat", chat, "count", p.batch.Parked)
		case decide.DropParked:
			g.meter.decided.WithLabelValues(string(msg.Dropped), string(e.Reason)).Add(float64(p.batch.Parked))
			g.log.Info("parked messages dropped", "chat", chat, "count", p.batch.Parked, "reason", e.Reason)
		}
	}
	g.act(p)
}

// act hands turns, stops and changes to the agents.
func (g *Gateway) act(p *plan) {
	for _, run := range p.drains {
		g.agents.Drain(run)
	}
	if p.stops {
		g.agents.Stop(p.cancelled)
	}
	if len(p.changed) > 0 {
		g.agents.Changed(p.changed...)
	}
	for _, t := range p.turns {
		g.log.turnStored(t, p.batch.Chat.JID)
		g.agents.Dispatch(t.turn)
	}
}

// stopChat ends the open turns and rows of a conversation, a page of them; agents.Run ends the rest.
func (p *plan) stopChat(tx *store.Tx, e *decide.StopChat) error {
	s := rows.Stop{ChatJID: p.batch.Chat.JID, By: e.By, BeforeMessage: e.Row, Sender: some(e.Only), Own: e.Own,
		Except: e.Except}
	if e.OneTopic {
		s.Topic = &e.Topic
	} else {
		s.Thread = &e.ThreadID
	}
	return p.stop(tx, s)
}

// some returns nil for "".
func some(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (p *plan) stop(tx *store.Tx, s rows.Stop) error {
	cancelled, _, err := rows.StopChat(tx, s, p.batch.Now)
	p.stops, p.cancelled = true, append(p.cancelled, cancelled...)
	return err
}

// retry repeats the pass of a chat whose decisions were not stored. A busy or full
// database is waited for. A row that cannot be stored for another reason is dropped
// after maxRowFailures, however many rows of its chat wait before it.
func (g *Gateway) retry(ctx context.Context, p *plan) {
	c := p.batch.chat
	g.waits.restart(c)
	if !permanent(p.err) {
		_ = g.writes.Note(ctx, p.err)
		g.waits.addAt(c, g.now()+dbRetryDelay.Milliseconds())
		return
	}
	if c.failed != p.at {
		c.failed, c.failures = p.at, 0
	}
	if c.failures++; c.failures == 1 { // another writer may have decided a row meanwhile
		g.waits.add(c)
		return
	}
	g.waits.addAt(c, g.now()+dbRetryDelay.Milliseconds())
	if c.failures == 2 {
		g.log.Error("storing a row's decision failed; retrying", "row", p.at, "chat", c.jid, "err", p.err)
	}
	if c.failures >= maxRowFailures {
		g.dropRow(ctx, c, p.at, p.err)
		c.failures = 0
	}
}

// dropRow ends a row that cannot be stored as it was decided.
func (g *Gateway) dropRow(ctx context.Context, c *chat, id int64, cause error) {
	m, err := g.st.Message(ctx, id)
	if err == nil && m != nil {
		err = g.st.Write(context.WithoutCancel(ctx), func(tx *store.Tx) error {
			return tx.Decide(id, store.Decision{
				Disposition: msg.Dropped, Reason: msg.ReasonBadRow, Topic: m.Topic, ThreadID: m.ThreadID,
				Error: cause.Error(),
			}, g.now())
		})
	}
	switch {
	case err == nil:
		g.log.Error("row dropped: its decision cannot be stored", "row", id, "chat", c.jid, "err", cause)
		g.meter.decided.WithLabelValues(string(msg.Dropped), string(msg.ReasonBadRow)).Inc()
	case permanent(err):
		g.log.Error("row skipped until the next start: it can be neither decided nor dropped",
			"row", id, "chat", c.jid, "err", errors.Join(cause, err))
		c.skip(id)
	}
}

// permanent reports whether an error comes from the row itself, so that a retry
// cannot succeed.
func permanent(err error) bool {
	return errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrStale)
}

// maxRowFailures is how often storing a row may fail, for another reason than a
// busy or full database, before it is dropped.
const maxRowFailures = 4
