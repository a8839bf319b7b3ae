package rows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// AsksDue returns open questions whose time is over, or whose message failed for good, oldest first, at most 100.
func AsksDue(ctx context.Context, r store.Reader, now int64) ([]*msg.Ask, error) {
	// Those that were asked over a minute (maxSkew) later than now are due as well: the clock was set back. So are
	// those about a request that has ended: the agent or its proxy may have been killed.
	const query = `SELECT ` + store.AskColumns + ` FROM asks a INDEXED BY asks_open
		WHERE a.state = 'open' AND (a.expires_at <= ?1 OR a.created_at > ?1 + 60000
			OR EXISTS (SELECT 1 FROM messages m WHERE m.id = a.message_id AND m.out_state = 'failed')
			OR substr(a.ask_id, 1, 7) = 'egress:' AND NOT EXISTS (SELECT 1 FROM egress_receipts e INDEXED BY egress_receipts_open
				WHERE e.ended_at = 0 AND CAST(e.id AS TEXT) = substr(a.ask_id, 73))) ORDER BY a.id LIMIT 100`
	return r.ReadAsks(ctx, query, now)
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

const updateExpireAsk = `UPDATE asks SET state = 'expired', ended_at = ? WHERE id = ? AND state = 'open'`

const updateAsked = `UPDATE turn_progress SET state = 'running', updated_at = ?2 WHERE turn_id = ?1 AND state = 'requires_action'
		AND NOT EXISTS (SELECT 1 FROM asks a WHERE a.turn_id = ?1 AND a.state = 'open')`

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
	const query = `SELECT DISTINCT t.id FROM turns t INDEXED BY turns_run CROSS JOIN asks a ON a.turn_id = t.id
		WHERE t.state = 'running' AND t.run_id = ? AND a.state = 'open' AND substr(a.ask_id, 1, 6) <> 'budget' ORDER BY 1`
	return store.All(ctx, r, store.One[int64], query, runID)
}

// Question is a question to users of a chat.
type Question struct {
	AskID       string // of an agent; or BudgetScope.AskID, whose first option raises the budget; or msg.AskRetry
	Question    string // one line
	Detail      string // shown as it is below it, "" for nothing
	Options     []string
	PayloadHash string              // makes it a permission request
	Allow       string              // of a permission request: the option that allows it, "" for no rules
	About       groupconfig.Subject // likewise, for who may answer it
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
// or expired; one that outlives its turn only while it is open. With another text or hash it is a new question, under an
// id of its own. A permission that a rule of the group gives is answered at once, without an outbound row. It returns
// ErrTooManyAsks beyond the limits of a turn, ErrNoUser if there is no one to ask, and ErrStale unless the turn is
// running; those that outlive their turn may be asked of any.
func PutAsk(tx *store.Tx, t *msg.Turn, q *Question, now int64) (*msg.Ask, error) {
	tx.Note(failpoint.PutAsk)
	a := &msg.Ask{
		TurnID: t.ID, AskID: q.AskID, Question: oneLine(q.Question), Options: q.Options, PayloadHash: q.PayloadHash,
		Who: q.Who, State: msg.AskOpen, CreatedAt: now, ExpiresAt: q.ExpiresAt,
	}
	if detail := strings.TrimRight(q.Detail, "\n"); detail != "" {
		a.Question += "\n" + detail
	}
	setAllow(a, q)
	known, err := tx.TurnAsks(store.Uncancelled(), t.ID)
	if err != nil {
		return nil, err
	}
	same := sameAsk(known, a)
	if same != nil && (same.State == msg.AskOpen || !msg.OutlivesTurn(a.AskID)) { // a retry may end in the same way
		return same, showAsking(tx, same, now)
	}
	if err := mayRequest(tx, t, a, known); err != nil {
		return nil, err
	}
	done, err := byRule(tx, t, a, now)
	if err != nil {
		return nil, err
	}
	if done {
		return a, insertAsk(tx, a)
	}
	if err := mayAsk(tx, t, a, known); err != nil {
		return nil, err
	}
	row := &msg.Message{
		ChatJID: t.ChatJID, Direction: msg.Out, IsBot: true, Sender: msg.AgentSender(t.Folder), SenderName: q.Name,
		Content: a.Text(q.Name), ReplyToID: t.ReplyTo, Topic: t.Place, ThreadID: t.ThreadID, TurnID: t.ID,
		Source:    cmp.Or(q.Source, msg.SourceTool),
		Timestamp: now, ReceivedAt: now, OutState: msg.OutStateOf(t.ChatJID),
	}
	if a.MessageID, _, err = tx.PutMessage(row); err != nil {
		return nil, err
	}
	if err := insertAsk(tx, a); err != nil {
		return nil, err
	}
	return a, showAsking(tx, a, now)
}

func insertAsk(tx *store.Tx, a *msg.Ask) (err error) {
	const query = `INSERT INTO asks (turn_id, ask_id, message_id, question, options, payload_hash, who, state, created_at, expires_at,
		tool, allow, always, option, answered_by, ended_at, rule_id, rule_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`
	a.ID, err = tx.Insert(query, a.TurnID, a.AskID, store.Null(a.MessageID), a.Question, a.OptionsJSON(), a.PayloadHash,
		a.Who.JSON(), string(a.State), a.CreatedAt, a.ExpiresAt, a.Tool, a.Allow, a.Always, store.Null(a.Option),
		store.Null(a.AnsweredBy), store.Null(a.EndedAt), a.RuleID, a.RuleAt)
	return err
}

// showAsking stores that a turn waits for a user, if it does. A turn that asks again after a retry stores nothing else.
func showAsking(tx *store.Tx, a *msg.Ask, now int64) error {
	const query = `INSERT INTO turn_progress (turn_id, state, updated_at) SELECT id, 'requires_action', ?2 FROM turns WHERE id = ?1 AND state = 'running'
		ON CONFLICT (turn_id) DO UPDATE SET state = 'requires_action', updated_at = excluded.updated_at`
	if a.State != msg.AskOpen || msg.OutlivesTurn(a.AskID) {
		return nil
	}
	return tx.Exec(query, a.TurnID, now)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// mayRequest returns why a turn may not have a new question, whether users are asked or a rule answers, and makes its id
// unique.
func mayRequest(tx *store.Tx, t *msg.Turn, a *msg.Ask, known []*msg.Ask) error {
	if a.Who.None() {
		return fmt.Errorf("%w here: only %s may", ErrNoUser, a.Who.Label)
	}
	for n := 2; slices.ContainsFunc(known, func(k *msg.Ask) bool { return k.AskID == a.AskID }); n++ {
		id, _, _ := strings.Cut(a.AskID, againMark)
		a.AskID = id + againMark + strconv.Itoa(n)
	}
	if msg.OutlivesTurn(a.AskID) {
		return nil
	}
	if len(known) >= agentproto.MaxAsks {
		return ErrTooManyAsks
	}
	now, err := tx.Turn(store.Uncancelled(), t.ID)
	if err == nil && (now == nil || now.State != msg.TurnRunning) {
		err = fmt.Errorf("question of turn %d: %w", t.ID, store.ErrStale)
	}
	return err
}

// mayAsk returns why the users of a turn's chat can't be asked.
func mayAsk(tx *store.Tx, t *msg.Turn, a *msg.Ask, known []*msg.Ask) error {
	if t.ThreadID == "" {
		if has, err := HasTopLevel(store.Uncancelled(), tx.Reader, t.ChatJID); err != nil || !has {
			return cmp.Or(err, fmt.Errorf("the chat is a forum, and this turn is in none of its posts: %w", ErrNoUser))
		}
	}
	open := 0
	for _, k := range known {
		if k.State == msg.AskOpen {
			open++
		}
	}
	if open >= agentproto.MaxOpenAsks && !msg.OutlivesTurn(a.AskID) {
		return ErrTooManyAsks
	}
	return nil
}

// againMark and a number follow the id of a question that was asked under an id that the turn had used for another one.
const againMark = "~"

// sameAsk returns the question of a turn that is the same as another: of one id, with equal texts and hash.
func sameAsk(known []*msg.Ask, a *msg.Ask) *msg.Ask {
	for _, k := range known {
		id, _, _ := strings.Cut(k.AskID, againMark)
		if (id == a.AskID || k.AskID == a.AskID) && k.PayloadHash == a.PayloadHash && k.Question == a.Question &&
			slices.Equal(k.Own(), a.Options) {
			return k
		}
	}
	return nil
}

// AnswerAsk answers an open question with an option, by its number from 1, and changes the message that shows it. name
// is that of the sender, at when the answer came, in unix ms. Whether the sender may answer is for the caller to check.
// It returns ErrStale if the question has ended, the answer came too late, or there is no such option.
func AnswerAsk(tx *store.Tx, id int64, option int, sender, name string, at, now int64) error {
	const query = `UPDATE asks SET state = 'answered', option = ?, answered_by = ?, ended_at = ?, rule_id = ?, rule_at = ?
		WHERE id = ? AND state = 'open'`
	tx.Note(failpoint.AnswerAsk)
	a, err := tx.Ask(store.Uncancelled(), id)
	if err != nil {
		return err
	}
	if a == nil || a.State != msg.AskOpen || !a.Takes(at) || option < 1 || option > len(a.Options) {
		return fmt.Errorf("answer to question %d: %w", id, store.ErrStale)
	}
	a.State, a.Option, a.AnsweredBy, a.EndedAt = msg.AskAnswered, a.Options[option-1], sender, now
	if a.Always && option == len(a.Options) {
		if a.Option, err = a.Allow, makeRule(tx, a, sender, now); err != nil {
			return err
		}
	}
	if _, err := tx.Change(query, a.Option, sender, now, a.RuleID, a.RuleAt, id); err != nil {
		return err
	}
	if msg.IsBudget(a.AskID) && option == 1 {
		if err := raiseBudget(tx, a, sender, now); err != nil {
			return err
		}
	}
	if msg.IsRetry(a.AskID) {
		if err := retry(tx, a, sender, now); err != nil {
			return err
		}
	}
	if strings.HasPrefix(a.AskID, msg.AskEgress) && a.Option == msg.EgressAlways {
		if err := allowAlways(tx, a, sender, now); err != nil {
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
	// A question that no adapter has begun to send is not sent any more.
	const query = `UPDATE messages SET out_state = 'cancelled' WHERE id = ? AND out_state = 'queued'`
	tx.PokePeers()
	if err := tx.Exec(updateAsked, a.TurnID, now); err != nil {
		return err
	}
	n, err := tx.Change(query, a.MessageID)
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
		Timestamp: now, ReceivedAt: now, Source: msg.SourceNotice, OutState: msg.OutStateOf(m.ChatJID),
	})
	return err
}

// expireAsks ends the open questions of a turn that ends.
func expireAsks(tx *store.Tx, turnID, now int64) error {
	asks, err := tx.TurnAsks(store.Uncancelled(), turnID)
	for _, a := range asks {
		if err == nil && a.State == msg.AskOpen && !msg.OutlivesTurn(a.AskID) {
			err = ExpireAsk(tx, a.ID, now)
		}
	}
	return err
}

// retry queues the failed turn of a question again.
func retry(tx *store.Tx, a *msg.Ask, sender string, now int64) error {
	t, err := tx.Turn(store.Uncancelled(), a.TurnID)
	if err != nil || t == nil {
		return err
	}
	if err := ReviveTurn(tx, t.ID); err != nil {
		if errors.Is(err, store.ErrStale) { // it does not wait for a retry any more
			return nil
		}
		return err
	}
	return tx.PutAudit(sender, "retry turn", fmt.Sprintf("%d of %s in %s", t.ID, t.Folder, t.ChatJID), now)
}

// EndRetryAsks ends the open questions whether a turn is retried: it was, or it is taken back.
func EndRetryAsks(tx *store.Tx, turnID, now int64) error {
	asks, err := tx.TurnAsks(store.Uncancelled(), turnID)
	for _, a := range asks {
		if err == nil && a.State == msg.AskOpen && msg.IsRetry(a.AskID) {
			err = ExpireAsk(tx, a.ID, now)
		}
	}
	return err
}
