package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

func scanAsk(scan scanner) (*msg.Ask, error) {
	var a msg.Ask
	var options, who string
	err := scan(&a.ID, &a.TurnID, &a.AskID, &a.MessageID, &a.Question, &options, &a.PayloadHash, &who, &a.State,
		&a.Option,
		&a.AnsweredBy, &a.CreatedAt, &a.ExpiresAt, &a.EndedAt)
	if err != nil {
		return nil, fmt.Errorf("scan question: %w", err)
	}
	if json.Unmarshal([]byte(options), &a.Options) != nil { // JSON of another shape counts as none
		a.Options = nil
	}
	a.Who = msg.ParseWho(who)
	return &a, nil
}

func (r Reader) asks(ctx context.Context, query string, args ...any) ([]*msg.Ask, error) {
	return collect(ctx, r, scanAsk, query, args...)
}

// Ask returns a question by its row, nil if there is none.
func (r Reader) Ask(ctx context.Context, id int64) (*msg.Ask, error) {
	return first(r.asks(ctx, queryAsk, id))
}

// AskOfMessage returns the question that an outbound row shows, nil if it shows none.
func (r Reader) AskOfMessage(ctx context.Context, messageID int64) (*msg.Ask, error) {
	return first(r.asks(ctx, queryAskByMessage, messageID))
}

// TurnAsks returns the questions of a turn, oldest first.
func (r Reader) TurnAsks(ctx context.Context, turnID int64) ([]*msg.Ask, error) {
	return r.asks(ctx, queryTurnAsks, turnID)
}

// ChatAsks returns the open questions that are shown in a thread of a chat, "" for outside of one, oldest first, at
// most 20.
func (r Reader) ChatAsks(ctx context.Context, chatJID, threadID string) ([]*msg.Ask, error) {
	return r.asks(ctx, queryChatAsks, chatJID, threadID)
}

// AsksOpenAt returns the questions that were open at a time, in unix ms, that are shown in a thread of a chat,
// among the chat's 1000 messages before a row, oldest first, at most 20.
func (r Reader) AsksOpenAt(ctx context.Context, chatJID, threadID string, before, at int64) ([]*msg.Ask, error) {
	return r.asks(ctx, queryAsksOpenAt, chatJID, threadID, before, at)
}

// SaidSince reports whether agents have said something between a row and a later one, in the thread of that, in a web
// chat in its topic. Notices and answers to commands don't count.
func (r Reader) SaidSince(ctx context.Context, row int64, until *msg.Message) (bool, error) {
	return value[bool](ctx, r, querySaidSince, until.ChatJID, row, until.ID, until.ThreadID,
		msg.Place(until.ThreadID, until.Topic))
}

// Presses returns the rows of buttons that were pressed below a message, by its platform id, oldest first, at most 20.
func (r Reader) Presses(ctx context.Context, chatJID, platformID string) ([]*msg.Message, error) {
	return r.messages(ctx, queryPresses, chatJID, platformID)
}

// AsksDue returns open questions whose time is over, or whose message failed for good, oldest first, at most 100.
func (r Reader) AsksDue(ctx context.Context, now int64) ([]*msg.Ask, error) {
	return r.asks(ctx, queryAsksDue, now)
}

// AskLost says why a question of a turn that goes on ended without an answer before its time, "" if it did not.
func (r Reader) AskLost(ctx context.Context, a *msg.Ask) (why string, err error) {
	if a.State != msg.AskExpired {
		return "", nil
	}
	m, err := r.Message(ctx, a.MessageID)
	switch {
	case m != nil && m.OutState == msg.OutFailed:
		return "it could not be delivered, so no user has read it", err
	case a.EndedAt < a.ExpiresAt:
		return "its message was deleted before anyone answered it", err
	}
	return "", err
}

// EndAskOf ends the open question that an outbound row shows without an answer: its message was deleted.
func (tx *Tx) EndAskOf(messageID, now int64) error {
	a, err := tx.AskOfMessage(uncancelled(), messageID)
	if err != nil || a == nil || a.State != msg.AskOpen {
		return err
	}
	if _, err := tx.change(updateExpireAsk, now, a.ID); err != nil {
		return err
	}
	tx.pokePeers()
	return tx.exec(updateAsked, a.TurnID, now)
}

// RunAsking returns the turns of a run that wait for the answers to questions.
func (r Reader) RunAsking(ctx context.Context, runID int64) ([]int64, error) {
	return collect(ctx, r, one[int64], queryRunOpenAsks, runID)
}

// AskOfTarget returns the question that the message of a platform id shows in a chat, nil if it shows none.
func (r Reader) AskOfTarget(ctx context.Context, chatJID, platformID string) (*msg.Ask, error) {
	if platformID == "" {
		return nil, nil
	}
	m, err := r.MessageByPlatformID(ctx, chatJID, platformID)
	if err != nil || m == nil || m.Direction != msg.Out {
		return nil, err
	}
	return r.AskOfMessage(ctx, m.ID)
}

// Question is what is asked.
type Question struct {
	AskID       string // of an agent; or BudgetScope.AskID, whose first option raises the budget
	Question    string // one line
	Detail      string // shown as it is below it, "" for nothing
	Options     []string
	PayloadHash string // makes it a permission request
	Who         msg.Who
	Name        string // of the assistant that asks
	Source      string // of the outbound row; "": msg.SourceTool
	ExpiresAt   int64  // unix ms
}

// Errors of PutAsk.
var (
	ErrTooManyAsks = errors.New("the turn has asked too many questions")
	ErrNoUser      = errors.New("no user may answer")
)

// PutAsk asks users of a turn's chat: it stores the question with the outbound row that shows it. If the turn has asked
// the same before, under the same id and with the same hash, that question is returned as it is by now: open, answered
// or expired; one about a budget only while it is open. With another text or hash it is a new question, under an id of
// its own. It returns ErrTooManyAsks beyond the limits of a turn, ErrNoUser if there is no one to ask, and ErrStale
// unless the turn is running; those about budgets may be asked of any turn.
func (tx *Tx) PutAsk(t *msg.Turn, q *Question, now int64) (*msg.Ask, error) {
	tx.note(failpoint.PutAsk)
	a := &msg.Ask{
		TurnID: t.ID, AskID: q.AskID, Question: oneLine(q.Question), Options: q.Options, PayloadHash: q.PayloadHash,
		Who:   q.Who,
		State: msg.AskOpen, CreatedAt: now, ExpiresAt: q.ExpiresAt,
	}
	if detail := strings.TrimRight(q.Detail, "\n"); detail != "" {
		a.Question += "\n" + detail
	}
	known, err := tx.TurnAsks(uncancelled(), t.ID)
	if err != nil {
		return nil, err
	}
	same := sameAsk(known, a)
	if same != nil && (same.State == msg.AskOpen || !msg.IsBudget(a.AskID)) { // a budget is used up again after a retry
		return same, tx.showAsking(same, now)
	}
	if err := tx.mayAsk(t, a, known); err != nil {
		return nil, err
	}
	row := &msg.Message{
		ChatJID: t.ChatJID, Direction: msg.Out, IsBot: true, Sender: msg.AgentSender(t.Folder), SenderName: q.Name,
		Content:   a.Text(q.Name),
		ReplyToID: t.ReplyTo, Topic: t.Place, ThreadID: t.ThreadID, TurnID: t.ID,
		Source:    cmp.Or(q.Source, msg.SourceTool),
		Timestamp: now, ReceivedAt: now, OutState: OutStateOf(t.ChatJID),
	}
	if a.MessageID, _, err = tx.PutMessage(row); err != nil {
		return nil, err
	}
	options, err := json.Marshal(a.Options)
	if err != nil {
		return nil, err
	}
	a.ID, err = tx.insert(insertAsk, a.TurnID, a.AskID, a.MessageID, a.Question, string(options), a.PayloadHash,
		a.Who.JSON(), a.CreatedAt, a.ExpiresAt)
	if err == nil {
		err = tx.showAsking(a, now)
	}
	return a, err
}

// showAsking stores that a turn waits for a user, if it does: also one that asks again after a retry, of which nothing
// else is stored.
func (tx *Tx) showAsking(a *msg.Ask, now int64) error {
	if a.State != msg.AskOpen || msg.IsBudget(a.AskID) {
		return nil
	}
	return tx.exec(upsertAsking, a.TurnID, now)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// mayAsk returns why a turn may not ask a new question, and makes its id unique.
func (tx *Tx) mayAsk(t *msg.Turn, a *msg.Ask, known []*msg.Ask) error {
	if a.Who.None() {
		return ErrNoUser
	}
	if t.ThreadID == "" {
		if has, err := tx.HasTopLevel(uncancelled(), t.ChatJID); err != nil || !has {
			return cmp.Or(err, fmt.Errorf("the chat is a forum, and this turn is in none of its posts: %w", ErrNoUser))
		}
	}
	for n := 2; slices.ContainsFunc(known, func(k *msg.Ask) bool { return k.AskID == a.AskID }); n++ {
		id, _, _ := strings.Cut(a.AskID, againMark)
		a.AskID = id + againMark + strconv.Itoa(n)
	}
	if msg.IsBudget(a.AskID) {
		return nil
	}
	open := 0
	for _, k := range known {
		if k.State == msg.AskOpen {
			open++
		}
	}
	if open >= agentproto.MaxOpenAsks || len(known) >= agentproto.MaxAsks {
		return ErrTooManyAsks
	}
	now, err := tx.Turn(uncancelled(), t.ID)
	if err == nil && (now == nil || now.State != msg.TurnRunning) {
		err = fmt.Errorf("question of turn %d: %w", t.ID, ErrStale)
	}
	return err
}

// againMark and a number follow the id of a question that was asked under an id that the turn had used for another one.
const againMark = "~"

// sameAsk returns the question of a turn that is the same as another: of one id, with equal texts and hash.
func sameAsk(known []*msg.Ask, a *msg.Ask) *msg.Ask {
	for _, k := range known {
		id, _, _ := strings.Cut(k.AskID, againMark)
		if (id == a.AskID || k.AskID == a.AskID) && k.PayloadHash == a.PayloadHash && k.Question == a.Question &&
			slices.Equal(k.Options, a.Options) {
			return k
		}
	}
	return nil
}

// AnswerAsk answers an open question with an option, by its number from 1, and changes the message that shows it. name
// is that of the sender, at when the answer came, in unix ms. Whether the sender may answer is for the caller to check.
// It returns ErrStale if the question has ended, the answer came too late, or there is no such option.
func (tx *Tx) AnswerAsk(id int64, option int, sender, name string, at, now int64) error {
	tx.note(failpoint.AnswerAsk)
	a, err := tx.Ask(uncancelled(), id)
	if err != nil {
		return err
	}
	if a == nil || a.State != msg.AskOpen || !a.Takes(at) || option < 1 || option > len(a.Options) {
		return fmt.Errorf("answer to question %d: %w", id, ErrStale)
	}
	a.State, a.Option, a.AnsweredBy, a.EndedAt = msg.AskAnswered, a.Options[option-1], sender, now
	if _, err := tx.change(updateAnswerAsk, a.Option, sender, now, id); err != nil {
		return err
	}
	if msg.IsBudget(a.AskID) && option == 1 {
		if err := tx.raiseBudget(a, sender, now); err != nil {
			return err
		}
	}
	return tx.endAsk(a, cmp.Or(name, sender), now)
}

// ExpireAsk ends an open question without an answer, which counts as no. One that has ended stays as it is.
func (tx *Tx) ExpireAsk(id, now int64) error {
	a, err := tx.Ask(uncancelled(), id)
	if err != nil || a == nil || a.State != msg.AskOpen {
		return err
	}
	tx.note(failpoint.ExpireAsk)
	a.State, a.EndedAt = msg.AskExpired, now
	if _, err := tx.change(updateExpireAsk, now, id); err != nil {
		return err
	}
	return tx.endAsk(a, "", now)
}

// endAsk queues the edit that takes the buttons of an ended question away, if its platform still knows the message. One
// that was not sent yet is not sent at all.
func (tx *Tx) endAsk(a *msg.Ask, by string, now int64) error {
	tx.pokePeers()
	if err := tx.exec(updateAsked, a.TurnID, now); err != nil {
		return err
	}
	n, err := tx.change(updateCancelAsk, a.MessageID)
	if err != nil || n > 0 {
		return err
	}
	m, err := tx.Message(uncancelled(), a.MessageID)
	if err != nil || m == nil || m.OutState == msg.OutFailed || m.OutState == msg.OutCancelled {
		return err
	}
	if lost, err := tx.Unreachable(uncancelled(), m); err != nil || lost != "" {
		return err
	}
	_, _, err = tx.PutMessage(&msg.Message{
		ChatJID: m.ChatJID, Direction: msg.Out, Kind: msg.KindEdit, IsBot: true, Sender: m.Sender,
		SenderName: m.SenderName,
		Content:    a.EndedText(m.SenderName, by), DerivedFrom: m.ID, Topic: m.Topic, ThreadID: m.ThreadID,
		Timestamp: now, ReceivedAt: now, Source: msg.SourceNotice, OutState: OutStateOf(m.ChatJID),
	})
	return err
}

// maxCopies is how many further messages of a question lose their buttons: resends leave no more.
const maxCopies = 3

// EndCopy queues the edit that takes the buttons of an ended question away from another message that shows it, by its
// platform id: a crash left it before its id was stored. The next calls for that message do nothing.
func (tx *Tx) EndCopy(a *msg.Ask, platformID string, now int64) error {
	changes, err := tx.DerivedFrom(uncancelled(), a.MessageID)
	if err != nil {
		return err
	}
	var edit *msg.Message
	copies := 0
	for _, c := range changes {
		switch {
		case c.Kind != msg.KindEdit || c.Source != msg.SourceNotice:
		case c.TargetID == "":
			edit = c
		case c.TargetID == platformID:
			return nil
		default:
			copies++
		}
	}
	if edit == nil || copies == maxCopies {
		return nil
	}
	_, _, err = tx.PutMessage(&msg.Message{
		ChatJID: edit.ChatJID, Direction: msg.Out, Kind: msg.KindEdit, IsBot: true, Sender: edit.Sender,
		SenderName: edit.SenderName, Content: edit.Content, DerivedFrom: a.MessageID, TargetID: platformID,
		Topic: edit.Topic, ThreadID: edit.ThreadID, Timestamp: now, ReceivedAt: now, Source: msg.SourceNotice,
		OutState: OutStateOf(edit.ChatJID),
	})
	return err
}

// expireAsks ends the open questions of a turn that ends.
func (tx *Tx) expireAsks(turnID, now int64) error {
	asks, err := tx.TurnAsks(uncancelled(), turnID)
	for _, a := range asks {
		if err == nil && a.State == msg.AskOpen && !msg.IsBudget(a.AskID) {
			err = tx.ExpireAsk(a.ID, now)
		}
	}
	return err
}
