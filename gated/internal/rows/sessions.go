package rows

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// maxRevived bounds the turns that are queued again when a day's budget is raised.
const maxRevived = 1000

// micros is how many of the units of router_state and of a question's id are a US dollar.
const micros = 1_000_000

// BudgetScope is what a budget is for: a turn, or a group on a day.
type BudgetScope struct {
	Turn   int64  // 0: a day
	Folder string // of a day
	Day    string // YYYY-MM-DD
}

// askPrefix begins the ids of the questions whether the budget is raised; the amount in micros follows.
func (b BudgetScope) askPrefix() string {
	if b.Turn != 0 {
		return msg.AskBudget + "-turn-"
	}
	return msg.AskBudget + "-day-" + b.Day + "-"
}

// AskID is the id of the question whether the budget is raised by an amount, in US dollars.
func (b BudgetScope) AskID(usd float64) string {
	return b.askPrefix() + strconv.FormatInt(int64(math.Round(usd*micros)), 10)
}

// Asks reports whether a question is whether this budget is raised, by whatever amount.
func (b BudgetScope) Asks(a *msg.Ask) bool { return strings.HasPrefix(a.AskID, b.askPrefix()) }

// key is where router_state has what the budget was raised by.
func (b BudgetScope) key() string {
	if b.Turn != 0 {
		return "raised turn " + strconv.FormatInt(b.Turn, 10)
	}
	return "raised " + b.Day + " " + b.Folder
}

// problem begins the error of the turns that were ended since the budget was used up.
func (b BudgetScope) problem() string {
	if b.Turn != 0 {
		return "the budget of the turn is used up: "
	}
	return "the budget of the group for " + b.Day + " is used up: "
}

// Ended reports whether a turn was ended since the budget was used up.
func (b BudgetScope) Ended(t *msg.Turn) bool {
	return t.Reason == msg.ReasonOverBudget && strings.HasPrefix(t.Error, b.problem())
}

// scopeOf is the budget that a question is about, and by how many micros its first option raises it.
func scopeOf(a *msg.Ask, t *msg.Turn) (b BudgetScope, by int64, err error) {
	id, _, _ := strings.Cut(strings.TrimPrefix(a.AskID, msg.AskBudget+"-"), againMark)
	of, amount := id, ""
	if i := strings.LastIndexByte(id, '-'); i >= 0 {
		of, amount = id[:i], id[i+1:]
	}
	if by, err = strconv.ParseInt(amount, 10, 64); err != nil {
		return b, 0, fmt.Errorf("question %d about a budget has the id %q: %w", a.ID, a.AskID, err)
	}
	if day, ok := strings.CutPrefix(of, "day-"); ok {
		return BudgetScope{Folder: t.Folder, Day: day}, by, nil
	}
	return BudgetScope{Turn: t.ID}, by, nil
}

// Raised returns by how many US dollars a budget was raised.
func Raised(ctx context.Context, r store.Reader, b BudgetScope) (usd float64, err error) {
	by, err := r.State(ctx, b.key())
	return float64(by) / micros, err
}

// EndOverBudget ends an open turn since a budget is used up: it is queued again if an operator raises that. used and
// budget are in US dollars. It returns ErrStale if the turn has ended.
func EndOverBudget(tx *store.Tx, t *msg.Turn, b BudgetScope, used, budget float64, now int64) error {
	pokeTyping(tx, t)
	problem := fmt.Sprintf("%s$%.2f of $%.2f", b.problem(), used, budget)
	if err := endTurn(tx, t, ending{state: msg.TurnCancelled, reason: msg.ReasonOverBudget, problem: problem},
		now); err != nil {
		return err
	}
	return tx.Unmark(t.ID, now)
}

// raiseBudget raises the budget that a question is about, queues the turns again that were ended for it, and ends the
// questions of other chats about it: what was asked is done.
func raiseBudget(tx *store.Tx, a *msg.Ask, sender string, now int64) error {
	t, err := tx.Turn(store.Uncancelled(), a.TurnID)
	if err != nil || t == nil {
		return err
	}
	b, by, err := scopeOf(a, t)
	if err != nil {
		return err
	}
	if err := tx.Exec(addState, b.key(), by); err != nil {
		return err
	}
	detail, ended := fmt.Sprintf("turn %d of group %s", t.ID, t.Folder), []int64{t.ID}
	if b.Turn == 0 {
		detail = fmt.Sprintf("group %s on %s", b.Folder, b.Day)
		if ended, err = store.All(store.Uncancelled(), tx.Reader, store.One[int64], queryOverBudget, b.Folder,
			b.problem(),
			maxRevived); err != nil {
			return err
		}
	}
	if err := tx.PutAudit(sender, "raise budget", fmt.Sprintf("%s by $%.2f", detail, float64(by)/micros),
		now); err != nil {
		return err
	}
	for _, id := range ended {
		if err := reviveOverBudget(tx, id, b); err != nil {
			return err
		}
	}
	return endBudgetAsks(tx, a, b, now)
}

func reviveOverBudget(tx *store.Tx, id int64, b BudgetScope) error {
	t, err := tx.Turn(store.Uncancelled(), id)
	if err != nil || t == nil || t.State != msg.TurnCancelled || !b.Ended(t) {
		return err
	}
	if err = ReviveTurn(tx, id); errors.Is(err, store.ErrStale) {
		return nil
	}
	return err
}

// endBudgetAsks ends the open questions whether a budget is raised, but for the answered one.
func endBudgetAsks(tx *store.Tx, answered *msg.Ask, b BudgetScope, now int64) error {
	open, err := tx.ReadAsks(store.Uncancelled(), store.QueryTurnAsks, answered.TurnID)
	if b.Turn == 0 {
		open, err = tx.ReadAsks(store.Uncancelled(), queryFolderOpenAsks, b.Folder)
	}
	if err != nil {
		return err
	}
	open = slices.DeleteFunc(open, func(a *msg.Ask) bool {
		return a.ID == answered.ID || a.State != msg.AskOpen ||
			!b.Asks(a)
	})
	for _, a := range open {
		if err := ExpireAsk(tx, a.ID, now); err != nil {
			return err
		}
	}
	return nil
}

// PutAgentModels stores the models that an agent offers to a group, in place of those before.
func PutAgentModels(tx *store.Tx, folder, agent string, m agentproto.Models, now int64) error {
	list, err := json.Marshal(orEmpty(m.Models))
	if err != nil {
		return err
	}
	return tx.Exec(putAgentModels, folder, agent, string(list), m.Current, now)
}

// PutProgress stores what an agent says of its work on a turn, in place of what was stored before, and pokes who shows
// it. It returns ErrStale if the turn is not the run's, or has ended.
func PutProgress(tx *store.Tx, run msg.Run, turnID int64, p *store.Progress) error {
	tx.Note(failpoint.PutProgress)
	plan, err := json.Marshal(orEmpty(p.Plan))
	if err != nil {
		return err
	}
	tools, err := json.Marshal(orEmpty(p.Tools))
	if err != nil {
		return err
	}
	n, err := tx.Change(upsertProgress, turnID, run.ID, p.State, p.Text, string(plan), string(tools), p.UpdatedAt)
	if err == nil && n == 0 {
		err = fmt.Errorf("progress of turn %d: %w", turnID, store.ErrStale)
	}
	tx.Poke(msg.DaemonOf(run.ChatJID))
	return err
}

// orEmpty makes JSON of nothing an empty list.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// AgentSession is the session that one agent has in a folder's topic, "" if it has none there: the topic's, or the one
// that is kept while another agent answers. agent is its name in AGENTS, "" for the default one.
func AgentSession(ctx context.Context, r store.Reader, folder, topic, agent string) (string, error) {
	return store.Value[string](ctx, r, queryAgentSession, folder, topic, agent)
}

// LastAgent is the agent that has answered in a folder's topic last, before a run; known is false if none has.
func LastAgent(ctx context.Context, r store.Reader, folder, topic string, beforeRun int64) (agent string, known bool,
	err error) {
	known, err = r.Get(ctx, []any{&agent}, queryLastAgent, folder, topic, beforeRun)
	return agent, known, err
}

// EvictSession deletes a session of an agent that failed, and reports whether there was one;
// the caller ends its run.
func EvictSession(tx *store.Tx, folder, topic, agent string) (evicted bool, err error) {
	n, err := tx.Change(deleteAgentSession, folder, topic, agent)
	if err != nil {
		return false, err
	}
	kept, err := tx.Change(deleteAgentKept, folder, topic, agent)
	return n+kept > 0, err
}

// ResetSession deletes the sessions of a topic, of all agents, and closes its live run, so that no late frame
// stores it again. It returns the run, 0 if none was live.
func ResetSession(tx *store.Tx, folder, topic string, now int64) (runID int64, err error) {
	tx.Note(failpoint.ResetSession)
	for _, query := range []string{deleteSession, deleteKeptSessions} {
		if err := tx.Exec(query, folder, topic); err != nil {
			return 0, err
		}
	}
	_, err = tx.Find([]any{&runID}, updateCloseLive, now, folder, topic)
	return runID, err
}

// PastSession is one entry of the session log.
type PastSession struct {
	StartedAt    int64
	EndedAt      int64
	Agent        string // its name in AGENTS, "" for the default one
	SessionID    string
	Result       string
	Error        string
	MessageCount int
}

// PastSessions returns the last entries of a topic's session log before a
// run, newest first, at most limit.
func PastSessions(ctx context.Context, r store.Reader, folder, topic string, beforeRun int64, limit int) ([]PastSession,
	error) {
	return store.All(ctx, r, func(scan store.Scan) (p PastSession, err error) {
		err = scan(&p.StartedAt, &p.EndedAt, &p.Agent, &p.SessionID, &p.Result, &p.Error, &p.MessageCount)
		return p, err
	}, queryPastSessions, folder, topic, beforeRun, limit)
}

// SystemMessage is a line for a folder's next prompt.
type SystemMessage struct {
	ID     int64
	Origin string
	Event  string
	Body   string
}

// ClaimSystemMessages assigns every unclaimed line of a folder to a turn: its
// prompt carries them, also when the turn is retried.
func ClaimSystemMessages(tx *store.Tx, folder string, turnID int64) error {
	tx.Note(failpoint.TakeSystem)
	return tx.Exec(updateClaimSystem, turnID, folder)
}

// PromptFacts says what else has to be read for a turn's prompt.
type PromptFacts struct {
	SystemWaits  bool         // the folder has unclaimed lines
	HasSystem    bool         // the turn has claimed some
	LastDecision int64        // the highest decision_seq in use
	Groups       int64        // version of the groups' configuration, and of the routes
	Kind         msg.ChatKind // of the turn's chat, "" if no adapter has described it
	Title        string       // of the turn's chat, its first 256 characters
	Unseen       bool         // the chat has rows that are neither of the turn nor shown to its run
}

// ReadPromptFacts returns the facts for the prompt of a turn, as of one moment. The turn's
// run has been shown the rows of the chat up to shownUpto, and wrote its own answers.
func ReadPromptFacts(ctx context.Context, r store.Reader, t *msg.Turn, runID, shownUpto int64) (f PromptFacts,
	err error) {
	_, err = r.Get(ctx, []any{&f.SystemWaits, &f.HasSystem, &f.LastDecision, &f.Groups, &f.Kind, &f.Title, &f.Unseen},
		queryPromptFacts, t.Folder, t.ID, t.ChatJID, shownUpto, runID)
	return f, err
}

// TurnSystemMessages returns the lines that a turn's prompt carries.
func TurnSystemMessages(ctx context.Context, r store.Reader, turnID int64) ([]SystemMessage, error) {
	return store.All(ctx, r, func(scan store.Scan) (m SystemMessage, err error) {
		err = scan(&m.ID, &m.Origin, &m.Event, &m.Body)
		return m, err
	}, querySystemOfTurn, turnID)
}

// AddUsage adds to what a turn has used, and to what its group has used in its chat on a day, YYYY-MM-DD, and stores
// how full the turn's conversation is. The turn may have ended.
func AddUsage(tx *store.Tx, turnID int64, u agentproto.Usage, day string) error {
	if u.Input != 0 || u.Output != 0 || u.CostUSD != 0 {
		if err := tx.Exec(upsertSpend, turnID, day, u.Input, u.Output, u.CostUSD); err != nil {
			return err
		}
	}
	_, err := tx.Change(updateUsage, u.Input, u.Output, u.CostUSD, u.ContextUsed, u.ContextSize, turnID)
	return err
}

// MaxTranscript is how long a transcript may be, in bytes: about an hour of speech.
const MaxTranscript = 64 << 10

// WantedTranscript is an audio file that is to be transcribed before its turn starts.
type WantedTranscript struct {
	ID, MessageID, TurnID int64
	N                     int // of the attachment, from 1
	Folder                string
	Until                 int64 // when the turn starts without it, unix ms; 0 as long as the file is not there
	TurnCreated           int64 // unix ms
	TurnWaits             bool  // else it has started without, or has ended
	Pending               bool  // the file is still to be downloaded
	File                  msg.Attachment
}

// WantedTranscripts returns at most limit of what is to be transcribed, the oldest first.
func WantedTranscripts(ctx context.Context, r store.Reader, limit int) ([]WantedTranscript, error) {
	return store.All(ctx, r, func(scan store.Scan) (w WantedTranscript, err error) {
		var files sql.NullString
		if err := scan(&w.ID, &w.MessageID, &w.N, &w.TurnID, &w.Folder, &w.Until, &files, &w.Pending, &w.TurnCreated,
			&w.TurnWaits); err != nil {
			return w, err
		}
		var all []msg.Attachment
		if files.Valid && json.Unmarshal([]byte(files.String), &all) == nil && w.N <= len(all) {
			w.File = all[w.N-1]
		}
		return w, nil
	}, queryWantedTranscripts, limit)
}

// WantTranscripts asks for the transcripts of a message's audio files, before a turn starts that waits for files. Those
// that were asked for before stay as they are. id is the row that the turn got, m or one derived from it.
func WantTranscripts(tx *store.Tx, m *msg.Message, id int64, turn *msg.Turn, now int64) error {
	for i := range m.Attachments {
		a := &m.Attachments[i]
		if !a.IsAudio() || a.Error != "" {
			continue
		}
		if err := tx.Exec(insertTranscript, id, i+1, turn.ID, turn.Folder, now); err != nil {
			return err
		}
	}
	return nil
}

// HoldForTranscript sets when a turn starts without a transcript, in unix ms. The first time holds.
func HoldForTranscript(tx *store.Tx, id, turn, until, now int64) error {
	tx.Note(failpoint.HoldTranscript)
	n, err := tx.Change(updateTranscriptUntil, id, until, now)
	if err != nil || n == 0 {
		return err
	}
	return tx.Exec(updateHeldTurn, turn, until)
}

// EndTranscript stores a transcript, or why there is none, unless that was done before. The text is cut at
// MaxTranscript.
func EndTranscript(tx *store.Tx, id int64, text, problem string, now int64) (stored bool, err error) {
	tx.Note(failpoint.EndTranscript)
	state := "done"
	if problem != "" {
		state, text = "failed", ""
	}
	text = strings.TrimSpace(store.CleanText(text))
	if len(text) > MaxTranscript {
		text = store.Truncate(text, MaxTranscript-len(msg.CutMark)) + msg.CutMark
	}
	n, err := tx.Change(updateTranscriptEnd, id, state, text, store.CleanText(problem), now)
	return n > 0, err
}
