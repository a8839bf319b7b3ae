package rows

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
	"arizuko/pkg/store"
)

// SaidSince reports whether agents have said something between a row and a later one, in the thread of that, in a web
// chat in its topic. Notices and answers to commands don't count.
func SaidSince(ctx context.Context, r store.Reader, row int64, until *msg.Message) (bool, error) {
	return store.Value[bool](ctx, r, querySaidSince, until.ChatJID, row, until.ID, until.ThreadID,
		msg.Place(until.ThreadID, until.Topic))
}

// AsksDue returns open questions whose time is over, or whose message failed for good, oldest first, at most 100.
func AsksDue(ctx context.Context, r store.Reader, now int64) ([]*msg.Ask, error) {
	return r.ReadAsks(ctx, queryAsksDue, now)
}

// AskLost says why a question of a turn that goes on ended without an answer before its time, "" if it did not.
func AskLost(ctx context.Context, r store.Reader, a *msg.Ask) (why string, err error) {
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
func EndAskOf(tx *store.Tx, messageID, now int64) error {
	a, err := tx.AskOfMessage(store.Uncancelled(), messageID)
	if err != nil || a == nil || a.State != msg.AskOpen {
		return err
	}
	if _, err := tx.Change(updateExpireAsk, now, a.ID); err != nil {
		return err
	}
	tx.PokePeers()
	return tx.Exec(updateAsked, a.TurnID, now)
}

// RunAsking returns the turns of a run that wait for the answers to questions.
func RunAsking(ctx context.Context, r store.Reader, runID int64) ([]int64, error) {
	return store.All(ctx, r, store.One[int64], queryRunOpenAsks, runID)
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
func PutAsk(tx *store.Tx, t *msg.Turn, q *Question, now int64) (*msg.Ask, error) {
	tx.Note(failpoint.PutAsk)
	a := &msg.Ask{
		TurnID: t.ID, AskID: q.AskID, Question: oneLine(q.Question), Options: q.Options, PayloadHash: q.PayloadHash,
		Who:   q.Who,
		State: msg.AskOpen, CreatedAt: now, ExpiresAt: q.ExpiresAt,
	}
	if detail := strings.TrimRight(q.Detail, "\n"); detail != "" {
		a.Question += "\n" + detail
	}
	known, err := tx.TurnAsks(store.Uncancelled(), t.ID)
	if err != nil {
		return nil, err
	}
	same := sameAsk(known, a)
	if same != nil && (same.State == msg.AskOpen || !msg.IsBudget(a.AskID)) { // a budget is used up again after a retry
		return same, showAsking(tx, same, now)
	}
	if err := mayAsk(tx, t, a, known); err != nil {
		return nil, err
	}
	row := &msg.Message{
		ChatJID: t.ChatJID, Direction: msg.Out, IsBot: true, Sender: msg.AgentSender(t.Folder), SenderName: q.Name,
		Content:   a.Text(q.Name),
		ReplyToID: t.ReplyTo, Topic: t.Place, ThreadID: t.ThreadID, TurnID: t.ID,
		Source:    cmp.Or(q.Source, msg.SourceTool),
		Timestamp: now, ReceivedAt: now, OutState: store.OutStateOf(t.ChatJID),
	}
	if a.MessageID, _, err = tx.PutMessage(row); err != nil {
		return nil, err
	}
	options, err := json.Marshal(a.Options)
	if err != nil {
		return nil, err
	}
	a.ID, err = tx.Insert(insertAsk, a.TurnID, a.AskID, a.MessageID, a.Question, string(options), a.PayloadHash,
		a.Who.JSON(), a.CreatedAt, a.ExpiresAt)
	if err == nil {
		err = showAsking(tx, a, now)
	}
	return a, err
}

// showAsking stores that a turn waits for a user, if it does: also one that asks again after a retry, of which nothing
// else is stored.
func showAsking(tx *store.Tx, a *msg.Ask, now int64) error {
	if a.State != msg.AskOpen || msg.IsBudget(a.AskID) {
		return nil
	}
	return tx.Exec(upsertAsking, a.TurnID, now)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// mayAsk returns why a turn may not ask a new question, and makes its id unique.
func mayAsk(tx *store.Tx, t *msg.Turn, a *msg.Ask, known []*msg.Ask) error {
	if a.Who.None() {
		return ErrNoUser
	}
	if t.ThreadID == "" {
		if has, err := HasTopLevel(store.Uncancelled(), tx.Reader, t.ChatJID); err != nil || !has {
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
	now, err := tx.Turn(store.Uncancelled(), t.ID)
	if err == nil && (now == nil || now.State != msg.TurnRunning) {
		err = fmt.Errorf("question of turn %d: %w", t.ID, store.ErrStale)
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
func AnswerAsk(tx *store.Tx, id int64, option int, sender, name string, at, now int64) error {
	tx.Note(failpoint.AnswerAsk)
	a, err := tx.Ask(store.Uncancelled(), id)
	if err != nil {
		return err
	}
	if a == nil || a.State != msg.AskOpen || !a.Takes(at) || option < 1 || option > len(a.Options) {
		return fmt.Errorf("answer to question %d: %w", id, store.ErrStale)
	}
	a.State, a.Option, a.AnsweredBy, a.EndedAt = msg.AskAnswered, a.Options[option-1], sender, now
	if _, err := tx.Change(updateAnswerAsk, a.Option, sender, now, id); err != nil {
		return err
	}
	if msg.IsBudget(a.AskID) && option == 1 {
		if err := raiseBudget(tx, a, sender, now); err != nil {
			return err
		}
	}
	return endAsk(tx, a, cmp.Or(name, sender), now)
}

// ExpireAsk ends an open question without an answer, which counts as no. One that has ended stays as it is.
func ExpireAsk(tx *store.Tx, id, now int64) error {
	a, err := tx.Ask(store.Uncancelled(), id)
	if err != nil || a == nil || a.State != msg.AskOpen {
		return err
	}
	tx.Note(failpoint.ExpireAsk)
	a.State, a.EndedAt = msg.AskExpired, now
	if _, err := tx.Change(updateExpireAsk, now, id); err != nil {
		return err
	}
	return endAsk(tx, a, "", now)
}

// endAsk queues the edit that takes the buttons of an ended question away, if its platform still knows the message. One
// that was not sent yet is not sent at all.
func endAsk(tx *store.Tx, a *msg.Ask, by string, now int64) error {
	tx.PokePeers()
	if err := tx.Exec(updateAsked, a.TurnID, now); err != nil {
		return err
	}
	n, err := tx.Change(updateCancelAsk, a.MessageID)
	if err != nil || n > 0 {
		return err
	}
	m, err := tx.Message(store.Uncancelled(), a.MessageID)
	if err != nil || m == nil || m.OutState == msg.OutFailed || m.OutState == msg.OutCancelled {
		return err
	}
	if lost, err := tx.Unreachable(store.Uncancelled(), m); err != nil || lost != "" {
		return err
	}
	_, _, err = tx.PutMessage(&msg.Message{
		ChatJID: m.ChatJID, Direction: msg.Out, Kind: msg.KindEdit, IsBot: true, Sender: m.Sender,
		SenderName: m.SenderName,
		Content:    a.EndedText(m.SenderName, by), DerivedFrom: m.ID, Topic: m.Topic, ThreadID: m.ThreadID,
		Timestamp: now, ReceivedAt: now, Source: msg.SourceNotice, OutState: store.OutStateOf(m.ChatJID),
	})
	return err
}

// expireAsks ends the open questions of a turn that ends.
func expireAsks(tx *store.Tx, turnID, now int64) error {
	asks, err := tx.TurnAsks(store.Uncancelled(), turnID)
	for _, a := range asks {
		if err == nil && a.State == msg.AskOpen && !msg.IsBudget(a.AskID) {
			err = ExpireAsk(tx, a.ID, now)
		}
	}
	return err
}

// PutBroadcast stores a broadcast without its rows. fresh is false if its key is stored already.
func PutBroadcast(tx *store.Tx, b *Broadcast) (fresh bool, err error) {
	chats, err := json.Marshal(b.Chats)
	if err != nil {
		return false, err
	}
	n, err := tx.Change(insertBroadcast, b.Key, store.Cut(store.CleanText(b.Text), store.MaxContent), b.CreatedBy,
		string(chats),
		b.CreatedAt)
	return n > 0, err
}

// PutBroadcastPage stores the rows for the next limit chats of a broadcast, and ends it with the last one. done
// is true if no row is missing any more.
func PutBroadcastPage(tx *store.Tx, key string, limit int, now int64) (done bool, err error) {
	tx.Note(failpoint.PutBroadcast)
	b, err := BroadcastByKey(store.Uncancelled(), tx.Reader, key)
	if err != nil || b == nil || b.EndedAt != 0 {
		return true, err
	}
	for range limit {
		at := len(b.MessageIDs)
		if at >= len(b.Chats) {
			break
		}
		id, err := PutBroadcastMessage(tx, b.Chats[at], b.Text, now)
		if err != nil {
			return false, err
		}
		b.MessageIDs = append(b.MessageIDs, id)
	}
	ids, err := json.Marshal(b.MessageIDs)
	if err != nil {
		return false, err
	}
	var ended int64
	if len(b.MessageIDs) >= len(b.Chats) {
		ended = now
	}
	err = tx.Exec(updateBroadcast, string(ids), store.Null(ended), b.ID)
	return ended != 0, err
}

// PutBroadcastMessage stores a message at the top level of a chat that answers nothing.
func PutBroadcastMessage(tx *store.Tx, chatJID, text string, now int64) (id int64, err error) {
	return putBroadcastMessage(tx, &msg.Message{ChatJID: chatJID, Content: text}, now)
}

// PutBroadcastMessageFor stores one that a group's agent sends on behalf of a sender.
func PutBroadcastMessageFor(tx *store.Tx, folder, payer, chatJID, text string, now int64) (id int64, err error) {
	return putBroadcastMessage(tx, &msg.Message{ChatJID: chatJID, Content: text, Sender: msg.AgentSender(folder),
		OnBehalfOf: payer}, now)
}

func putBroadcastMessage(tx *store.Tx, m *msg.Message, now int64) (id int64, err error) {
	m.Direction, m.IsBot, m.Source, m.OutState = msg.Out, true, msg.SourceBroadcast, store.OutStateOf(m.ChatJID)
	m.Timestamp, m.ReceivedAt = now, now
	id, _, err = tx.PutMessage(m)
	return id, err
}

// TopLevels returns those of some chats that take messages outside of threads, and the others.
func TopLevels(ctx context.Context, r store.Reader, jids []string) (with, without []string, err error) {
	for _, jid := range jids {
		has, err := HasTopLevel(ctx, r, jid)
		switch {
		case err != nil:
			return nil, nil, err
		case has:
			with = append(with, jid)
		default:
			without = append(without, jid)
		}
	}
	return with, without, nil
}

// ChatsPage returns the chats whose addresses come after one, at most limit, by address.
func ChatsPage(ctx context.Context, r store.Reader, after string, limit int) ([]*msg.Chat, error) {
	return store.All(ctx, r, func(scan store.Scan) (*msg.Chat, error) {
		var c msg.Chat
		err := scan(&c.JID, &c.Kind, &c.Title, &c.StickyTopic, &c.StickyGroup, &c.StickyAt)
		return &c, err
	}, queryChatsPage, after, limit)
}

// AnnouncedSchema is the schema version that gated has announced last, 0 for none.
func AnnouncedSchema(ctx context.Context, r store.Reader) (version int64, err error) {
	return r.State(ctx, stateAnnounced)
}

// SetAnnouncedSchema stores that version.
func SetAnnouncedSchema(tx *store.Tx, version int64) error {
	return tx.Exec(putState, stateAnnounced, version)
}

// SchemaVersion is the number of the last migration.
func SchemaVersion(ctx context.Context, r store.Reader) (int64, error) {
	return store.Value[int64](ctx, r, `SELECT version FROM schema_migrations`)
}

func scanContextObject(scan store.Scan) (*msg.ContextObject, error) {
	var o msg.ContextObject
	var reasons string
	err := scan(&o.ChatJID, &o.ID, &o.Kind, &o.Topic, &o.SourceMessageID, &o.Label, &o.URL, &o.CreatedAt,
		&o.LastTouchedAt, &reasons, &o.CreatedBy, &o.CreatedByBot, &o.ClosedAt, &o.DueAt, &o.ActiveUntil)
	if err == nil {
		err = o.Reasons.UnmarshalJSON([]byte(reasons))
	}
	if err != nil {
		return nil, fmt.Errorf("scan context object: %w", err)
	}
	return &o, nil
}

// ContextObjectsOf returns the objects of a chat that are active at now, in unix ms.
func ContextObjectsOf(ctx context.Context, r store.Reader, chatJID string, now int64) ([]msg.ContextObject, error) {
	return store.All(ctx, r, func(scan store.Scan) (msg.ContextObject, error) {
		o, err := scanContextObject(scan)
		if err != nil {
			return msg.ContextObject{}, err
		}
		return *o, nil
	}, queryContextOfChat, chatJID, now)
}

// ContextObject returns an object by its id, also one that has ended; nil if it is not stored.
func ContextObject(ctx context.Context, r store.Reader, chatJID, id string) (*msg.ContextObject, error) {
	return store.First(store.All(ctx, r, scanContextObject, queryContextObject, chatJID, id))
}

// ContextObjectOf returns the object of a kind that is active at now and comes from a message; nil
// if there is none.
func ContextObjectOf(ctx context.Context, r store.Reader, chatJID string, kind msg.ContextKind, messageID,
	now int64) (*msg.ContextObject, error) {
	return store.First(store.All(ctx, r, scanContextObject, queryContextOfSource, chatJID, kind, messageID, now))
}

// ChatHasTopics reports whether a chat has topics beside the default one: threads, or a named topic
// in one of its last 100 turns.
func ChatHasTopics(ctx context.Context, r store.Reader, chatJID string) (bool, error) {
	return store.Value[bool](ctx, r, queryChatHasTopics, chatJID)
}

// PutContextObject stores an object, and deletes those of its chat beyond the limit: of those active at now
// the ones touched longest ago, open polls last.
func PutContextObject(tx *store.Tx, o *msg.ContextObject, limit int, now int64) error {
	reasons, err := o.Reasons.MarshalJSON()
	if err != nil {
		return err
	}
	err = tx.Exec(putContextObject, o.ChatJID, o.ID, o.Kind, o.Topic, store.Null(o.SourceMessageID), o.Label, o.URL,
		o.CreatedAt,
		o.LastTouchedAt, string(reasons), store.Null(o.CreatedBy), o.CreatedByBot, store.Null(o.ClosedAt),
		store.Null(o.DueAt),
		o.ActiveUntil, o.Kind.TTL())
	if err != nil {
		return fmt.Errorf("put context object %s: %w", o.ID, err)
	}
	return tx.Exec(deleteContextExcess, o.ChatJID, o.ID, now, limit-1)
}

// DeleteContextObject deletes an object, if it is stored.
func DeleteContextObject(tx *store.Tx, chatJID, id string) error {
	return tx.Exec(deleteContextObject, chatJID, id)
}

// DeleteContextObjectsOf deletes the objects of a chat that come from a message.
func DeleteContextObjectsOf(tx *store.Tx, chatJID string, messageID int64) error {
	return tx.Exec(deleteContextOfSource, chatJID, messageID)
}

// DeleteEndedContextObjects deletes at most limit objects that ended before now and returns how many.
func DeleteEndedContextObjects(tx *store.Tx, now int64, limit int) (deleted int64, err error) {
	return tx.Change(deleteEndedContext, now, limit)
}

// OpenForks are the topics of the open forks of a group in a chat, the oldest first, at most limit.
func OpenForks(ctx context.Context, r store.Reader, folder, chatJID string, limit int) ([]string, error) {
	return store.All(ctx, r, store.One[string], queryOpenForks, chatJID, folder, limit)
}

// ForkTaken reports whether a topic cannot become a fork of a group in a chat: there is or
// was such a fork in the chat, the group has an open one in another chat, whose session it
// would share, or users have begun the topic.
func ForkTaken(ctx context.Context, r store.Reader, folder, chatJID, topic string) (bool, error) {
	return store.Value[bool](ctx, r, queryForkTaken, folder, chatJID, topic)
}

// LastFork is the highest number that a correction has in a chat, 0 for none. first is the
// topic of number 1.
func LastFork(ctx context.Context, r store.Reader, chatJID, first string) (int, error) {
	return store.Value[int](ctx, r, queryLastFork, chatJID, first)
}

// PutFork stores an open fork. A topic that is or was a fork of the chat is an ErrRefused.
func PutFork(tx *store.Tx, f *msg.Fork) error {
	jid, err := tx.Address(store.Uncancelled(), f.ChatJID)
	if err != nil {
		return err
	}
	if err := tx.Exec(insertFork, jid, f.Topic, f.Folder, f.ThreadID, f.OwnThread, f.MessageID,
		f.CreatedAt); err != nil {
		return fmt.Errorf("fork %s: %w", f.Topic, err)
	}
	return nil
}

// ForksOfRow are the forks that a message may run in, those of all groups, the first of a
// group being its own: forks of the message's place that it replies to, then the one whose
// own thread it is in, which may have ended. In a thread whose replies do not say what they
// answer, a message replies to every fork, the newest first.
func ForksOfRow(ctx context.Context, r store.Reader, m *msg.Message) ([]*msg.Fork, error) {
	forks, err := r.RepliedForks(ctx, m)
	if err != nil || m.ThreadID == "" {
		return forks, err
	}
	own, err := r.ForkOfThread(ctx, m.ChatJID, m.ThreadID)
	if err != nil || own == nil {
		return forks, err
	}
	return append(forks, own), nil
}

// LastAnswer is the newest message of a group's agent in a place of a chat, 0 for none.
func LastAnswer(ctx context.Context, r store.Reader, folder, chatJID, place string) (int64, error) {
	return store.Value[int64](ctx, r, queryLastAnswer, chatJID, place, folder)
}

// PollsOf returns a group's polls in a chat that have a state and ids below before, the newest first, at
// most limit.
func PollsOf(ctx context.Context, r store.Reader, chatJID, folder string, state msg.PollState, before int64,
	limit int) ([]*msg.StoredPoll, error) {
	return r.Polls(ctx, queryPollsInState, chatJID, folder, state, before, limit)
}

// PollsDue returns open polls whose time to close has come, the earliest first, at most limit.
func PollsDue(ctx context.Context, r store.Reader, now int64, limit int) ([]*msg.StoredPoll, error) {
	return r.Polls(ctx, queryPollsDue, now, limit)
}

// PollsEnding returns closed polls after an id whose message on the platform is still to be closed,
// at most limit.
func PollsEnding(ctx context.Context, r store.Reader, after int64, limit int) ([]*msg.StoredPoll, error) {
	return r.Polls(ctx, queryPollsEnding, after, limit)
}

// PollsUndelivered returns open polls after an id whose message will never be delivered, at most limit.
func PollsUndelivered(ctx context.Context, r store.Reader, after int64, limit int) ([]*msg.StoredPoll, error) {
	return r.Polls(ctx, queryPollsUndelivered, after, limit)
}

// PollVoters returns for each option of a poll the names of the first voters who chose it, at most limit;
// a voter without a name has its sender.
func PollVoters(ctx context.Context, r store.Reader, p *msg.StoredPoll, limit int) ([][]string, error) {
	voters := make([][]string, len(p.Poll.Options))
	err := r.Each(ctx, func(scan store.Scan) (bool, error) {
		var option int
		var voter, name string
		err := scan(&option, &voter, &name)
		if err == nil && option >= 1 && option <= len(voters) {
			voters[option-1] = append(voters[option-1], cmp.Or(name, voter))
		}
		return err == nil, err
	}, queryPollVoters, p.ID, p.Poll.Multiple, limit)
	return voters, err
}

// VotesWaiting reports whether votes of a chat that were cast at the time before, in unix ms, or earlier
// are undecided.
func VotesWaiting(ctx context.Context, r store.Reader, chatJID string, before int64) (bool, error) {
	return store.Value[bool](ctx, r, queryVotesWaiting, chatJID, before)
}

// PutPoll stores an open poll whose outbound row is stored, and sets its id.
func PutPoll(tx *store.Tx, p *msg.StoredPoll) error {
	options, _ := json.Marshal(p.Poll.Options) // plain strings: cannot fail
	id, err := tx.Insert(insertPoll, p.MessageID, p.Folder, p.ChatJID, p.Topic, p.Poll.Question, string(options),
		p.Poll.Multiple,
		store.Null(p.Poll.ClosesAt), p.CreatedAt)
	if err != nil {
		return fmt.Errorf("put poll: %w", err)
	}
	p.State, p.ID = msg.PollOpen, id
	return nil
}

// ClosePoll closes an open poll at a time, in unix ms. Its message is closed by QueuePollEnd, once the
// votes that came before are counted. It returns ErrStale if the poll is closed.
func ClosePoll(tx *store.Tx, id, at int64) error {
	n, err := tx.Change(updateClosePoll, at, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("close poll %d: %w", id, store.ErrStale)
	}
	return err
}

// EndPoll records that a poll is closed on its platform, and its result, nil to leave it unknown.
func EndPoll(tx *store.Tx, id int64, result *msg.PollResult, at int64) error {
	var text any
	if result != nil {
		b, _ := json.Marshal(result) // plain numbers: cannot fail
		text = string(b)
	}
	return tx.Exec(updateEndedPoll, at, text, id)
}

// QueuePollEnd ends a poll that is closed in the rows: it inserts the outbound row that closes the
// poll's message, and stores the result where the platform does not count itself. It returns false
// while the message is not delivered. Of a message that was never delivered, or that its platform no
// longer knows, only the rows are changed: the result is then what was voted so far. A poll that has
// ended already stays as it is.
func QueuePollEnd(tx *store.Tx, id, now int64) (ended bool, err error) {
	poll, err := Poll(store.Uncancelled(), tx.Reader, id)
	if err != nil || poll == nil || !poll.EndPending {
		return err == nil, err
	}
	m, err := tx.Message(store.Uncancelled(), poll.MessageID)
	if err != nil || m == nil || m.OutState == msg.OutQueued || m.OutState == msg.OutSending {
		return false, err
	}
	tx.Note(failpoint.EndPoll)
	content, stored := poll.Poll, (*msg.PollResult)(nil)
	if content.Result, err = tx.PollResult(store.Uncancelled(), poll); err != nil {
		return false, err
	}
	lost, err := tx.Unreachable(store.Uncancelled(), m)
	if err != nil {
		return false, err
	}
	if limits, _ := msg.PollLimitsOf(m.ChatJID); !limits.Native || lost != "" {
		stored = content.Result
	}
	if m.PlatformID != "" && lost == "" {
		_, _, err = tx.PutMessage(&msg.Message{
			ChatJID: m.ChatJID, Direction: msg.Out, Kind: msg.KindPoll, IsBot: true, Content: content.JSON(),
			TargetID: m.PlatformID,
			Topic:    m.Topic, ThreadID: m.ThreadID, Timestamp: now, ReceivedAt: now, Source: msg.SourceNotice,
			OutState: store.OutStateOf(m.ChatJID),
		})
	}
	if err == nil {
		err = EndPoll(tx, id, stored, now)
	}
	return err == nil, err
}

// NextSlot is when the next reminder is due, in unix ms, 0 for never.
func NextSlot(ctx context.Context, r store.Reader) (int64, error) {
	return store.Value[int64](ctx, r, queryNextSlot)
}

// CountReminders returns how many reminders are active of a group, and for a chat.
func CountReminders(ctx context.Context, r store.Reader, folder, chatJID string) (ofFolder, ofChat int, err error) {
	_, err = r.Get(ctx, []any{&ofFolder, &ofChat}, queryCountReminders, folder, chatJID)
	return ofFolder, ofChat, err
}

// PlannedPrompts returns when the active prompts of a chat that fire once are due, in unix ms, sorted, but for a
// reminder.
func PlannedPrompts(ctx context.Context, r store.Reader, chatJID string, but int64) ([]int64, error) {
	return store.All(ctx, r, store.One[int64], queryPlannedPrompts, chatJID, but)
}

// CountActiveReminders returns how many reminders are active.
func CountActiveReminders(ctx context.Context, r store.Reader) (int, error) {
	return store.Value[int](ctx, r, queryCountActive)
}

// NotifiedOfLimit reports whether a chat got a notice since a time, in unix ms, that reminders of a sender wait for its
// rate. Only the chat's last 1,000 rows are considered.
func NotifiedOfLimit(ctx context.Context, r store.Reader, chatJID, payer string, since int64) (bool, error) {
	return store.Value[bool](ctx, r, queryNotifiedOfLimit, chatJID, payer, since)
}

// PutReminder adds an active reminder and sets its id. A chat's former address is replaced by the
// present one.
func PutReminder(tx *store.Tx, r *msg.Reminder) (err error) {
	if r.ChatJID, err = tx.Address(store.Uncancelled(), r.ChatJID); err != nil {
		return err
	}
	r.State = msg.ReminderActive
	tx.PokePeers()
	r.ID, err = tx.Insert(insertReminder, r.Folder, r.ChatJID, r.ThreadID, r.Topic, r.Kind,
		store.Cut(store.CleanText(r.Body), store.MaxContent), store.Null(r.DueAt),
		store.Null(r.Cron), r.TimeZone, r.Missed, store.Null(r.NextSlot), r.CreatedBy, r.UpdatedBy, r.CreatedAt,
		r.UpdatedAt,
		store.Null(r.RootTurnID), r.Depth)
	return err
}

// UpdateReminder stores a changed reminder. It returns ErrStale if it is not active.
func UpdateReminder(tx *store.Tx, r *msg.Reminder) error {
	tx.PokePeers()
	n, err := tx.Change(updateReminder, r.Topic, r.Kind, store.Cut(store.CleanText(r.Body), store.MaxContent),
		store.Null(r.DueAt),
		store.Null(r.Cron), r.TimeZone,
		r.Missed, store.Null(r.NextSlot), r.UpdatedBy, store.Null(r.RootTurnID), r.Depth, r.UpdatedAt, r.ID)
	if err == nil && n == 0 {
		err = fmt.Errorf("update reminder %d: %w", r.ID, store.ErrStale)
	}
	return err
}

// EndReminder ends an active reminder; problem is why gated does so itself, "" for another reason. It returns
// ErrStale if the reminder is not active.
func EndReminder(tx *store.Tx, id int64, state msg.ReminderState, by, problem string, now int64) error {
	n, err := tx.Change(updateEndReminder, state, store.CleanName(problem), by, now, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("end reminder %d: %w", id, store.ErrStale)
	}
	return err
}

// Firing is how a due reminder ends.
type Firing struct {
	Slot int64 // that fires, unix ms; 0 for none
	Next int64 // the next one, 0 for none: the reminder is done
	// Message is what it makes: an outbound row, or the inbound row that Turn answers.
	Message   *msg.Message
	Turn      *msg.Turn // nil for a text
	MaxAgents int       // see PutTurn
}

// FireReminder makes the message of a reminder's slot, with its turn, and moves the reminder on. fired is false
// if the slot has fired before, or f has none. It returns ErrStale if the reminder was changed since r was read.
func FireReminder(tx *store.Tx, r *msg.Reminder, f Firing, now int64) (fired bool, err error) {
	tx.Note(failpoint.FireReminder)
	state := msg.ReminderActive
	if f.Next == 0 {
		state = msg.ReminderDone
	}
	n, err := tx.Change(updateFireReminder, state, store.Null(f.Next), r.ID, store.Null(r.NextSlot), r.UpdatedAt)
	if err != nil {
		return false, err
	}
	if n == 0 {
		return false, fmt.Errorf("fire reminder %d: %w", r.ID, store.ErrStale)
	}
	if f.Slot == 0 {
		return false, nil
	}
	if n, err = tx.Change(insertSlot, r.ID, f.Slot); err != nil || n == 0 {
		return false, err
	}
	if _, _, err := tx.PutMessage(f.Message); err != nil {
		return false, err
	}
	if f.Turn != nil {
		if err := putReminderTurn(tx, f, now); err != nil {
			return false, err
		}
	}
	err = tx.Exec(updateSlot, f.Message.ID, r.ID, f.Slot)
	return err == nil, err
}

// putReminderTurn stores the turn of a reminder's prompt, and decides the prompt's row.
func putReminderTurn(tx *store.Tx, f Firing, now int64) (err error) {
	if root, err := tx.Turn(store.Uncancelled(), f.Turn.RootTurnID); err != nil {
		return err
	} else if root == nil { // deleted since, by its age
		f.Turn.RootTurnID = 0
	}
	if err := tx.EnsureChat(f.Message.ChatJID, now); err != nil {
		return err
	}
	if f.Turn.ChatJID, err = tx.Address(store.Uncancelled(), f.Turn.ChatJID); err != nil {
		return err
	}
	f.Turn.TriggerMessageID = f.Message.ID
	if _, err := PutTurn(tx, f.Turn, f.MaxAgents); err != nil {
		return err
	}
	return tx.Decide(f.Message.ID, store.Decision{
		Disposition: msg.Routed, Reason: msg.ReasonReminder, RoutedTo: f.Turn.Folder, TurnID: f.Turn.ID,
		Topic: f.Message.Topic,
	}, now)
}

// ScheduleReminder sets when an active reminder fires next, 0 for never: then it is done. It returns ErrStale if
// the reminder was changed since r was read.
func ScheduleReminder(tx *store.Tx, r *msg.Reminder, next int64) error {
	_, err := FireReminder(tx, r, Firing{Next: next}, 0)
	return err
}

// ToolCall returns the stored result of a turn's tool call, JSON; found is false for a
// call that has not acted yet.
func ToolCall(ctx context.Context, r store.Reader, turnID int64, call string) (result json.RawMessage, found bool,
	err error) {
	var text string
	found, err = r.Get(ctx, []any{&text}, queryToolCall, turnID, call)
	return json.RawMessage(text), found, err
}

// StoredBytes is the field of a call's result that says how much the call has stored, in bytes.
const StoredBytes = "stored_bytes"

// CountToolCalls is the number of a turn's tool calls that have acted, and how much they have stored, in bytes.
func CountToolCalls(ctx context.Context, r store.Reader, turnID int64) (n, bytes int, err error) {
	_, err = r.Get(ctx, []any{&n, &bytes}, queryToolCallCount, turnID)
	return n, bytes, err
}

// CountGroupCalls is the number of calls of a tool that have acted since a time, in unix ms, in the last 1,000 turns of
// a group.
func CountGroupCalls(ctx context.Context, r store.Reader, folder, tool string, since int64) (int, error) {
	return store.Value[int](ctx, r, queryGroupCalls, folder, tool, since)
}

// CountCallsOfRoot is the number of calls of three tools that have acted in a turn, or in
// those that came of it.
func CountCallsOfRoot(ctx context.Context, r store.Reader, root int64, tools [3]string) (int, error) {
	return store.Value[int](ctx, r, queryCallsOfRoot, root, tools[0], tools[1], tools[2])
}

// PutToolCall stores the first result of a turn's tool call, in the transaction of its
// effect. A second one for the same call is an ErrRefused.
func PutToolCall(tx *store.Tx, turnID int64, call, tool string, result json.RawMessage, now int64) error {
	tx.Note(failpoint.PutToolCall)
	return tx.Exec(insertToolCall, turnID, call, tool, string(result), now)
}

// ThreadOfTopic is a thread of a chat that is bound to a named topic, "" for none.
func ThreadOfTopic(ctx context.Context, r store.Reader, chatJID, topic string) (string, error) {
	return store.Value[string](ctx, r, queryThreadOfTopic, chatJID, topic)
}

// HasThread reports whether a chat is known to have a thread.
func HasThread(ctx context.Context, r store.Reader, chatJID, thread string) (bool, error) {
	return store.Value[bool](ctx, r, queryHasThread, chatJID, thread)
}
