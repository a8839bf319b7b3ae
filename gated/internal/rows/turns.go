package rows

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// endRequest does what follows from the end of a turn that works on what another group has asked for, unless it goes on
// once an escalation of its own is answered. The session of the request ends. If nothing was said, the asker of an
// escalation gets that as its answer, and the group that has delegated reads of it in its next prompt; a failure has
// a notice of its own, and an operator who cancels the turn knows.
func endRequest(tx *store.Tx, t *msg.Turn, as msg.TurnState, now int64) error {
	if !t.WorksForGroup() {
		return nil
	}
	calls, err := tx.ToolCalls(store.Uncancelled(), t.ID)
	if err != nil || slices.ContainsFunc(calls, func(c store.ToolCall) bool { return c.Tool == "escalate" }) {
		return err
	}
	if _, err = ResetSession(tx, t.Folder, t.Topic, now); err != nil || as == msg.TurnCancelled {
		return err
	}
	request, err := tx.Message(store.Uncancelled(), t.Request())
	if err != nil || request == nil || request.ForwardedFrom == nil {
		return err
	}
	from := request.ForwardedFrom
	var said bool
	if _, err = tx.Find([]any{&said}, querySaid, t.Folder, t.Topic, t.ID); err != nil || said {
		return err
	}
	switch {
	case from.Kind == msg.Escalation && as == msg.TurnDone:
		return answerAsker(tx, t, from, fmt.Sprintf("(No answer: %s has read this and said nothing.)", t.Folder), now)
	case from.Kind == msg.Delegation:
		return tx.PutSystemMessage(from.Folder, "gated", "delegation_unanswered",
			fmt.Sprintf("%s has ended what you delegated to it (message %d) without an answer.", t.Folder, request.ID), now)
	}
	return nil
}

// EndOldRequests ends the sessions of requests between groups that are older than a time, in unix ms, and have no open
// turn: those whose answer never came.
func EndOldRequests(tx *store.Tx, before, now int64) error {
	old, err := store.All(store.Uncancelled(), tx.Reader, func(scan store.Scan) (t msg.Turn, err error) {
		err = scan(&t.Folder, &t.Topic)
		return t, err
	}, queryOldRequests, before)
	for _, t := range old {
		if err == nil && t.WorksForGroup() {
			_, err = ResetSession(tx, t.Folder, t.Topic, now)
		}
	}
	return err
}

// ProbeAt is when a group whose turns fail alike may try the next one, in unix ms,
// 0 for other groups.
func ProbeAt(ctx context.Context, r store.Reader, folder string) (int64, error) {
	return store.Value[int64](ctx, r, queryProbeAt, folder, store.MinFailures)
}

// CountFailure records that a turn of a group has failed, and reports whether the
// group's turns now fail alike: then the next one is tried at probeAt.
func CountFailure(tx *store.Tx, folder, problem string, now, probeAt int64) (alike bool, err error) {
	var count int
	if _, err := tx.Find([]any{&count}, putFailures, folder, problem, now); err != nil || count < store.MinFailures {
		return false, err
	}
	return true, SetProbe(tx, folder, probeAt)
}

// SetProbe sets when a failing group may try the next turn.
func SetProbe(tx *store.Tx, folder string, at int64) error {
	return tx.Exec(updateProbeAt, at, folder)
}

// ClearFailures records that a turn of a group was answered, and reports whether one
// had failed before. It returns the lanes whose turns waited because of that.
func ClearFailures(tx *store.Tx, folder string) (cleared bool, lanes []string, err error) {
	n, err := tx.Change(deleteFailures, folder)
	if err != nil || n == 0 {
		return false, nil, err
	}
	tx.PokePeers()
	lanes, err = store.All(store.Uncancelled(), tx.Reader, store.One[string], updateProbed, folder)
	return true, lanes, err
}

// NotifiedOf reports whether a chat got a notice of a turn that failed in the same
// way since a time, in unix ms.
func NotifiedOf(ctx context.Context, r store.Reader, chatJID string, kind msg.ErrorKind, since int64) (bool, error) {
	return store.Value[bool](ctx, r, queryNotifiedOf, chatJID, since, kind)
}

// HasNotice reports whether arizuko itself has written to the chat about a turn.
func HasNotice(ctx context.Context, r store.Reader, turnID int64) (bool, error) {
	return store.Value[bool](ctx, r, queryNoticed, turnID)
}

// HasNoticeText reports whether a turn's chat has had a notice with this text.
func HasNoticeText(ctx context.Context, r store.Reader, turnID int64, text string) (bool, error) {
	return store.Value[bool](ctx, r, queryNoticedText, turnID, text)
}

// Lost is an outbound row that failed, or that may have arrived and was given up. Times are unix milliseconds.
type Lost struct {
	ID       int64          `json:"id"`
	ChatJID  string         `json:"chat_jid"`
	ThreadID string         `json:"thread_id,omitempty"`
	Topic    string         `json:"topic,omitempty"`
	Kind     msg.Kind       `json:"kind"`
	Source   string         `json:"source"`
	Content  string         `json:"content"` // its beginning
	State    msg.OutState   `json:"state"`
	Class    msg.ErrorClass `json:"error_class,omitempty"`
	Error    string         `json:"error,omitempty"`
	Parts    int            `json:"parts"`
	Sent     int            `json:"sent"` // parts that arrived, or may have
	QueuedAt int64          `json:"queued_at"`
	EndedAt  int64          `json:"ended_at"`
	NoticeID int64          `json:"notice_id,omitempty"` // the row that tells the chat
	CopyID   int64          `json:"copy_id,omitempty"`   // the last copy that was sent in its place
}

// LostRows lists the rows that were queued since a time, in unix ms, and were not delivered, the newest
// first, of one chat if chatJID is not empty.
func LostRows(ctx context.Context, r store.Reader, since int64, chatJID string, limit int) ([]Lost, error) {
	return store.All(ctx, r, func(scan store.Scan) (l Lost, err error) {
		err = scan(&l.ID, &l.ChatJID, &l.ThreadID, &l.Topic, &l.Kind, &l.Source, &l.Content, &l.State, &l.Class,
			&l.Error,
			&l.Parts, &l.Sent, &l.QueuedAt, &l.EndedAt, &l.NoticeID, &l.CopyID)
		return l, err
	}, queryLostRows, since, chatJID, limit)
}

// PutLossNotice inserts the notice of a row that was not delivered, into its chat, and returns its id: 0 if
// the row has one already, or a copy.
func PutLossNotice(tx *store.Tx, of *Lost, text string, now int64) (id int64, err error) {
	known, err := tx.DerivedFrom(store.Uncancelled(), of.ID)
	if err != nil {
		return 0, err
	}
	for _, m := range known {
		if m.Direction == msg.Out && !m.Kind.Changes() {
			return 0, nil
		}
	}
	notice := &msg.Message{
		ChatJID: of.ChatJID, ThreadID: of.ThreadID, Topic: of.Topic, Direction: msg.Out, IsBot: true, Content: text,
		Timestamp: now, ReceivedAt: now, Source: msg.SourceNotice, DerivedFrom: of.ID,
		OutState: store.OutStateOf(of.ChatJID),
	}
	_, _, err = tx.PutMessage(notice)
	return notice.ID, err
}

// QueueBacklog is what queued turns wait for.
type QueueBacklog struct {
	Ready store.Backlog // for an agent, or for an older turn of their conversation
	Later int           // for a time to come: those of Files and Probe, a retry, or the machine
	Files int           // for the files of their rows
	Probe int           // for the next attempt of a group whose turns fail alike
}

// CountQueue counts queued turns at the time now, in unix ms.
func CountQueue(ctx context.Context, r store.Reader, now int64, limit int) (b QueueBacklog, err error) {
	_, err = r.Get(ctx, []any{&b.Ready.Count, &b.Ready.Oldest, &b.Later, &b.Files, &b.Probe}, queryQueueBacklog, now,
		limit)
	return b, err
}

// LiveRuns counts the runs whose process has not ended, by runtime.
func LiveRuns(ctx context.Context, r store.Reader) (map[string]int, error) {
	live := map[string]int{}
	err := r.Each(ctx, func(scan store.Scan) (bool, error) {
		var runtime string
		var n int
		err := scan(&runtime, &n)
		live[runtime] = n
		return true, err
	}, queryLiveRuns)
	return live, err
}

// FenceExpired fences the other processes of a daemon whose time has passed, and returns their ids.
func FenceExpired(tx *store.Tx, daemon string, except int64) ([]int64, error) {
	return store.All(store.Uncancelled(), tx.Reader, store.One[int64], deleteExpired, daemon, except)
}

// ExpiredProcesses counts the other processes of a daemon whose time has passed.
func ExpiredProcesses(ctx context.Context, r store.Reader, daemon string, except int64) (int, error) {
	return store.Value[int](ctx, r, queryExpired, daemon, except)
}

// FolderOwner returns the process whose agents work in a folder, unless it is the one excepted; 0 if none do. Only the
// agents of one process work in a folder at a time.
func FolderOwner(ctx context.Context, r store.Reader, folder string, except int64) (int64, error) {
	return store.Value[int64](ctx, r, queryFolderOwner, folder, except)
}

// RunsOfGone returns the runs whose owner is fenced or has left: another gated queues their turns again.
func RunsOfGone(ctx context.Context, r store.Reader) ([]*msg.Run, error) {
	return store.All(ctx, r, store.ScanRun, queryRunsOfGone)
}

// QueuedLanes returns the lanes with queued turns, the one with the oldest first.
func QueuedLanes(ctx context.Context, r store.Reader) ([]string, error) {
	return store.All(ctx, r, func(scan store.Scan) (lane string, err error) {
		var oldest int64
		err = scan(&lane, &oldest)
		return lane, err
	}, queryQueuedLanes)
}

// NextQueued is the result of a search for a lane's next turn.
type NextQueued struct {
	Turn *msg.Turn // nil for none
	// Through is the id up to which no turn may start before Until, in unix ms, unless
	// one of them changes. Until is 0 if nothing was found to wait.
	Through int64
	Until   int64
}

// queuedPage is how many turns of a lane one read looks at.
const queuedPage = 1000

// FindQueued looks for the oldest turn of a lane, of those after an id, that may
// start at the time now: it does not wait for anything, and no older turn of its
// conversation is queued.
func FindQueued(ctx context.Context, r store.Reader, lane string, after, now int64) (next NextQueued, err error) {
	next.Through = after
	var found int64
	for rows := queuedPage; rows == queuedPage && found == 0; {
		rows = 0
		err = r.Each(ctx, func(scan store.Scan) (bool, error) {
			var id, notBefore int64
			var behind, stopped, later bool
			if err := scan(&id, &notBefore, &behind, &stopped, &later); err != nil {
				return false, err
			}
			rows++
			switch {
			case stopped, behind: // a stopped one never starts
				next.Through = id
				return true, nil
			case notBefore <= now || notBefore > now+MaxWait || later:
				found = id
				return false, nil
			}
			next.Through = id
			if next.Until == 0 || notBefore < next.Until {
				next.Until = notBefore
			}
			return true, nil
		}, queryNextQueued, lane, next.Through, queuedPage, now)
		if err != nil {
			return next, err
		}
	}
	if found != 0 {
		next.Turn, err = r.Turn(ctx, found)
	}
	return next, err
}

// FilesReady returns the queued turns, with their lanes, that wait for files of
// which none is pending any more.
func FilesReady(ctx context.Context, r store.Reader) (map[int64]string, error) {
	ready := map[int64]string{}
	err := r.Each(ctx, func(scan store.Scan) (bool, error) {
		var id int64
		var lane string
		err := scan(&id, &lane)
		ready[id] = lane
		return true, err
	}, queryFilesReady)
	return ready, err
}

// EndWait lets a queued turn start that waits for something.
func EndWait(tx *store.Tx, id int64, what msg.WaitsFor) error {
	tx.PokePeers()
	return tx.Exec(updateWaitOver, id, what)
}

// RunIsLive reports whether a run may store its session, and, unless it drains, take
// turns.
func RunIsLive(ctx context.Context, r store.Reader, id int64) (bool, error) {
	return store.Value[bool](ctx, r, queryRunIsLive, id)
}

// RunTakes reports whether a run may get further turns.
func RunTakes(ctx context.Context, r store.Reader, id int64) (bool, error) {
	return store.Value[bool](ctx, r, queryRunTakes, id)
}

// StartRun inserts a run for a queued turn and marks the turn as running. It sets
// r.ID. It returns ErrStale if the turn is not queued, or is covered by a /stop.
func StartRun(tx *store.Tx, r *msg.Run, turnID int64) (err error) {
	tx.Note(failpoint.StartRun)
	if err := claimFolder(tx, r.Folder); err != nil {
		return fmt.Errorf("start a run for turn %d: %w", turnID, err)
	}
	r.Owner = tx.OwnProcess()
	r.ID, err = tx.Insert(insertRun, r.Folder, r.Topic, r.ChatJID, r.ThreadID, r.Runtime, r.Owner, r.StartedAt)
	if err != nil {
		return err
	}
	session, err := AgentSession(store.Uncancelled(), tx.Reader, r.Folder, r.Topic, r.Agent)
	if err != nil {
		return err
	}
	if err = tx.Exec(insertLog, r.ID, r.StartedAt, r.Folder, r.Topic, r.Agent, session); err != nil {
		return err
	}
	t, err := tx.Turn(store.Uncancelled(), turnID)
	if err != nil {
		return err
	}
	if t == nil {
		return fmt.Errorf("start a run for turn %d: %w", turnID, store.ErrStale)
	}
	tx.Poke(msg.DaemonOf(r.ChatJID)) // which shows typing
	return giveTurn(tx, t, r.ID, r.StartedAt)
}

// claimFolder returns ErrStale if agents of another process work in a folder.
func claimFolder(tx *store.Tx, folder string) error {
	if tx.OwnProcess() == 0 {
		return nil
	}
	owner, err := FolderOwner(store.Uncancelled(), tx.Reader, folder, tx.OwnProcess())
	if err == nil && owner != 0 {
		err = fmt.Errorf("agents of process %d work in %s: %w", owner, folder, store.ErrStale)
	}
	return err
}

// RecordProcess stores how to find the run's process after a crash.
func RecordProcess(tx *store.Tx, runID int64, pid int, pidStart int64, label string) error {
	tx.Note(failpoint.RecordProcess)
	return tx.Exec(updateProcess, store.Null(pid), store.Null(pidStart), store.Null(label), runID)
}

// CloseRun closes a run: it gets no more turns and stores no session. Its process
// may still answer the turns it has.
func CloseRun(tx *store.Tx, runID, now int64) error {
	return tx.Exec(updateCloseRun, now, runID)
}

// EndRun records that a run's process has ended and closes its entry in the
// session log, with the error if there is one.
func EndRun(tx *store.Tx, runID int64, problem string, now int64) error {
	tx.Note(failpoint.EndRun)
	if err := CloseRun(tx, runID, now); err != nil {
		return err
	}
	if err := tx.Exec(updateEndRun, now, runID); err != nil {
		return err
	}
	tx.PokePeers()
	return tx.Exec(updateEndLog, now, problem, runID)
}

// Reply is one frame of an agent for one of its turns, or for several of them.
type Reply struct {
	RunID        int64
	Agent        string // the run's
	TurnID       int64
	With         []Folded         // further turns that it is for
	Text         string           // "" for no message
	Files        []msg.Attachment // sent after the text, each as a message of its own
	Final        bool             // the last frame of the turn
	SessionID    string           // "" leaves the session unchanged
	ObservedUpto int64            // the last decision that the prompt showed
	Sender       string
	SenderName   string
	Problem      string        // why the answer is only a part, "" if it is whole
	Kind         msg.ErrorKind // of the problem
}

// Folded is a turn that the agent took in while it worked on another one.
type Folded struct {
	TurnID       int64
	ObservedUpto int64 // the last decision that its prompt showed
}

// AnswerTurn stores one frame: the outbound row, the session and, with the last
// frame, the end of the turn, and of those folded into it, which have no row of their own.
// For a turn that was cancelled or has left the run it changes nothing and returns
// ErrStale, unless there is a folded one that has not: then the frame is that one's.
func AnswerTurn(tx *store.Tx, r Reply, now int64) error {
	tx.Note(failpoint.AnswerTurn)
	var folded []*msg.Turn
	for _, f := range append([]Folded{{r.TurnID, r.ObservedUpto}}, r.With...) {
		t, err := tx.Turn(store.Uncancelled(), f.TurnID)
		if err != nil {
			return err
		}
		if t != nil && t.RunID == r.RunID && (t.State == msg.TurnRunning || t.State == msg.TurnDone) {
			t.ObservedUpto = f.ObservedUpto
			folded = append(folded, t)
		}
	}
	if len(folded) == 0 {
		return fmt.Errorf("answer turn %d of run %d: %w", r.TurnID, r.RunID, store.ErrStale)
	}
	t := folded[0]
	if err := putReply(tx, t, folded[1:], r, now); err != nil {
		return err
	}
	if err := StoreSession(tx, &msg.Run{ID: r.RunID, Folder: t.Folder, Topic: t.Topic, Agent: r.Agent}, r.SessionID,
		now); err != nil {
		return err
	}
	for _, f := range folded {
		if err := closeAnswered(tx, f, t, r, now); err != nil {
			return err
		}
	}
	return nil
}

// closeAnswered stores that a frame was for a turn: for its own, or for the one that it was folded into.
func closeAnswered(tx *store.Tx, t, with *msg.Turn, r Reply, now int64) error {
	if err := tx.Exec(updateLog, r.SessionID, r.Final && t.State != msg.TurnDone, t.ID, r.RunID); err != nil {
		return err
	}
	if !r.Final || t.State == msg.TurnDone {
		return tx.Exec(updateFrame, r.Text != "", t.ObservedUpto, t.ID)
	}
	e := ending{state: msg.TurnDone, reason: msg.ReasonAnswered, kind: r.Kind, problem: r.Problem,
		replied: r.Text != "", observedUpto: t.ObservedUpto}
	switch {
	case t.ID != with.ID:
		e.reason, e.kind, e.problem, e.answeredWith = msg.ReasonFolded, "", "", with.ID
	case r.Problem != "":
		e.reason = msg.ReasonPartial
	case r.Text == "" && t.Frames == 0:
		e.reason = msg.ReasonSilent
	}
	pokeTyping(tx, t)
	return endTurn(tx, t, e, now)
}

// putReply writes the agent's text to the turn's address. Where turns were folded into it, it replies to what one turn
// of all their rows would: the last mention or reply, else the last row.
func putReply(tx *store.Tx, t *msg.Turn, folded []*msg.Turn, r Reply, now int64) error {
	if r.Text == "" {
		return nil
	}
	out := &msg.Message{Sender: r.Sender, SenderName: r.SenderName, Content: r.Text, Source: msg.SourceAgent}
	to := t
	for _, f := range folded {
		newer, err := newerTrigger(tx, to, f)
		if err != nil {
			return err
		}
		if newer {
			to = f
		}
	}
	if to.Frames == 0 {
		out.ReplyToID = to.ReplyTo
	}
	if err := putOut(tx, t, out, now); err != nil {
		return err
	}
	for _, a := range r.Files {
		file := &msg.Message{Kind: msg.KindFile, Sender: r.Sender, SenderName: r.SenderName, Source: msg.SourceAgent,
			Attachments: []msg.Attachment{a}}
		if err := putOut(tx, t, file, now); err != nil {
			return err
		}
	}
	return nil
}

// PutNotice sends a notice of arizuko itself to the turn's address.
func PutNotice(tx *store.Tx, t *msg.Turn, text string, now int64) error {
	return putOut(tx, t, &msg.Message{Content: text, Source: msg.SourceNotice, ReplyToID: t.ReplyTo}, now)
}

// PutInterimNotice sends a notice about a turn that goes on. The group that escalated
// gets none: it would take it for the answer.
func PutInterimNotice(tx *store.Tx, t *msg.Turn, text string, now int64) error {
	asker, err := Asker(store.Uncancelled(), tx.Reader, t)
	if err != nil || asker != nil {
		return err
	}
	return PutNotice(tx, t, text, now)
}

// Asker returns the return address of an escalation, whose asking group waits for the
// turn's answer; nil for any other turn.
func Asker(ctx context.Context, r store.Reader, t *msg.Turn) (*msg.ReturnAddress, error) {
	request := t.Request()
	if request == 0 {
		return nil, nil
	}
	row, err := r.Message(ctx, request)
	if err != nil || row == nil || row.ForwardedFrom == nil || row.ForwardedFrom.Kind != msg.Escalation {
		return nil, err
	}
	return row.ForwardedFrom, nil
}

// Escalated reports whether a group waits for the turn's answer, and not a chat.
func Escalated(ctx context.Context, r store.Reader, t *msg.Turn) (bool, error) {
	asker, err := Asker(ctx, r, t)
	return asker != nil, err
}

// putOut writes an outbound row to the turn's chat, or, for an escalation, an
// answer to the group that asked.
func putOut(tx *store.Tx, t *msg.Turn, out *msg.Message, now int64) error {
	asker, err := Asker(store.Uncancelled(), tx.Reader, t)
	if err != nil {
		return err
	}
	if asker != nil {
		return answerAsker(tx, t, asker, out.Content, now)
	}
	out.ChatJID, out.Direction, out.IsBot = t.ChatJID, msg.Out, true
	out.Topic, out.ThreadID, out.TurnID = t.Place, t.ThreadID, t.ID
	out.Timestamp, out.ReceivedAt, out.OutState = now, now, store.OutStateOf(t.ChatJID)
	_, _, err = tx.PutMessage(out)
	return err
}

// answerAsker writes the answer to an escalation as an inbound row in the asking group's internal chat, since no user
// sees it. Its turn has the chat, topic and thread of the one that asked.
func answerAsker(tx *store.Tx, t *msg.Turn, from *msg.ReturnAddress, text string, now int64) error {
	back := *from
	back.Kind, back.TurnID = msg.Answer, t.ID
	payer, err := Payer(store.Uncancelled(), tx.Reader, t)
	if err != nil {
		return err
	}
	if back.ChatJID, err = tx.Address(store.Uncancelled(), from.ChatJID); err != nil {
		return err
	}
	_, _, err = tx.PutMessage(&msg.Message{
		ChatJID: msg.GroupJID(from.Folder), Direction: msg.In, Sender: msg.AgentSender(t.Folder), SenderName: t.Folder,
		IsBot:   true,
		Content: text, Timestamp: now, ReceivedAt: now,
		Source: msg.SourceDelegate, ForwardedFrom: &back, OnBehalfOf: payer,
	})
	return err
}

// Payer is the sender who caused a turn, "" if its message is gone.
func Payer(ctx context.Context, r store.Reader, t *msg.Turn) (string, error) {
	trigger, err := r.Message(ctx, t.TriggerMessageID)
	if err != nil || trigger == nil {
		return "", err
	}
	return trigger.Payer(), nil
}

// StoreSession stores the session of a live run, unless it is "". That of another agent, which answered there before,
// is kept.
func StoreSession(tx *store.Tx, r *msg.Run, session string, now int64) error {
	if session == "" {
		return nil
	}
	live, err := RunIsLive(store.Uncancelled(), tx.Reader, r.ID)
	if err != nil || !live {
		return err
	}
	if err = tx.Exec(putKeptSession, r.Folder, r.Topic, r.Agent); err != nil {
		return err
	}
	if err = tx.Exec(deleteAgentKept, r.Folder, r.Topic, r.Agent); err != nil {
		return err
	}
	return tx.Exec(putSession, r.Folder, r.Topic, r.Agent, session, now)
}

// FinishTurn ends an open turn without another frame, as done after some output
// or as failed, with t.ErrorKind.
func FinishTurn(tx *store.Tx, t *msg.Turn, state msg.TurnState, reason msg.Reason, problem string, now int64) error {
	pokeTyping(tx, t)
	return endTurn(tx, t, ending{state: state, reason: reason, kind: t.ErrorKind, problem: problem}, now)
}

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

func scanStop(scan store.Scan) (s Stop, err error) {
	var except []byte
	err = scan(&s.ID, &s.ChatJID, &s.Topic, &s.Sender, &s.BeforeMessage, &s.ThroughTurn, &s.AfterMessage, &s.AfterTurn,
		&except, &s.CreatedAt, &s.Thread, &s.By)
	if err == nil {
		err = json.Unmarshal(except, &s.Except)
	}
	return s, err
}

// Stops returns every /stop that is not carried out yet, oldest first.
func Stops(ctx context.Context, r store.Reader) ([]Stop, error) {
	return store.All(ctx, r, scanStop, queryStops)
}

// StopsOf returns those of a chat.
func StopsOf(ctx context.Context, r store.Reader, chatJID string) ([]Stop, error) {
	return store.All(ctx, r, scanStop, queryStopsOfChat, chatJID)
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
func StopChat(tx *store.Tx, s Stop, now int64) (cancelled []*msg.Turn, more bool, err error) {
	s.Except, s.CreatedAt = append([]int64{}, s.Except...), now
	if _, err := tx.Find([]any{&s.ThroughTurn}, queryLastTurnID); err != nil {
		return nil, false, err
	}
	if cancelled, err = stopRunning(tx, s, now); err != nil {
		return nil, false, err
	}
	if err := stopRequests(tx, s, now); err != nil {
		return nil, false, err
	}
	if s.Turn != 0 {
		queued, err := queuedTurn(tx, s.Turn)
		if err == nil {
			queued, err = cancelTurns(tx, s, queued, now)
		}
		return append(cancelled, queued...), false, err
	}
	queued, more, err := stopSome(tx, &s, now)
	if err == nil && more {
		err = putStop(tx, s)
	}
	return append(cancelled, queued...), more, err
}

// queuedTurn returns a turn in a list, which is empty if the turn is not queued.
func queuedTurn(tx *store.Tx, id int64) ([]*msg.Turn, error) {
	t, err := tx.Turn(store.Uncancelled(), id)
	if err != nil || t == nil || t.State != msg.TurnQueued {
		return nil, err
	}
	return []*msg.Turn{t}, nil
}

func putStop(tx *store.Tx, s Stop) error {
	except, err := json.Marshal(s.Except)
	if err != nil {
		return err
	}
	return tx.Exec(insertStop, s.ChatJID, s.Topic, s.Sender, s.BeforeMessage, s.ThroughTurn, s.AfterMessage,
		s.AfterTurn, string(except), s.CreatedAt)
}

// ContinueStop ends the next page of what a /stop covers.
func ContinueStop(tx *store.Tx, s Stop, now int64) (cancelled []*msg.Turn, more bool, err error) {
	cancelled, more, err = stopSome(tx, &s, now)
	switch {
	case err != nil:
	case more:
		err = tx.Exec(updateStop, s.AfterMessage, s.AfterTurn, s.ID)
	default:
		err = tx.Exec(deleteStop, s.ID)
	}
	return cancelled, more, err
}

// stoppedChats returns the chat's address and its former ones whose rows are still
// moved to it. Ids stay as they are, so one cursor serves for all of them.
func stoppedChats(tx *store.Tx, s Stop) ([]string, error) {
	chats := []string{s.ChatJID}
	moving, err := store.All(store.Uncancelled(), tx.Reader, store.One[string], queryMoving)
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
	rows, err := tx.Messages(store.Uncancelled(), queryUndecidedBetween, maxBetween)
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
			ThreadID: m.ThreadID}, now); err != nil {
			return err
		}
	}
	return nil
}

func stopSome(tx *store.Tx, s *Stop, now int64) (cancelled []*msg.Turn, more bool, err error) {
	began := time.Now()
	chats, err := stoppedChats(tx, *s)
	if err != nil {
		return nil, false, err
	}
	moreRows, err := stopRows(tx, s, chats, now)
	if err != nil {
		return nil, false, err
	}
	var turns []*msg.Turn
	for _, jid := range chats {
		page, err := tx.ReadTurns(store.Uncancelled(), queryQueuedOfChat, jid, s.AfterTurn, s.ThroughTurn, stopPage+1)
		if err != nil {
			return nil, false, err
		}
		turns = append(turns, page...)
	}
	slices.SortFunc(turns, func(a, b *msg.Turn) int { return cmp.Compare(a.ID, b.ID) })
	left := len(turns)
	for chunk := range slices.Chunk(turns[:min(left, stopPage)], stopChunk) {
		some, err := cancelTurns(tx, *s, chunk, now)
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
		if err := CancelTurn(tx, t.ID, msg.ReasonCancelled, now); err != nil {
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
		pokeTyping(tx, t)
		cancelled = append(cancelled, t)
	}
	return cancelled, nil
}

// stopRows drops a page of rows and reports whether more follow.
func stopRows(tx *store.Tx, s *Stop, chats []string, now int64) (more bool, err error) {
	sticky, err := stickyTopic(tx, s.ChatJID)
	if err != nil {
		return false, err
	}
	var rows []msg.Message
	for _, jid := range chats {
		page, err := store.All(store.Uncancelled(), tx.Reader, func(scan store.Scan) (m msg.Message, err error) {
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
		err := tx.Decide(m.ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonStopped, Topic: m.Topic,
			ThreadID: m.ThreadID}, now)
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
	stops, err := StopsOf(store.Uncancelled(), tx.Reader, present)
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

// ofConversation reports whether a turn is of the conversation that a /stop ends. One outside of threads also ends what
// the same user asked for there and is answered in a thread that begins at the question, as on Slack.
func ofConversation(tx *store.Tx, s *Stop, t *msg.Turn) (bool, error) {
	present, err := tx.Address(store.Uncancelled(), t.ChatJID)
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
	asked, err := tx.Message(store.Uncancelled(), t.TriggerMessageID)
	return asked != nil && asked.PlatformID == t.ThreadID && asked.Sender == s.By, err
}

// DrainRun keeps a run from getting further turns.
func DrainRun(tx *store.Tx, runID int64) error {
	tx.PokePeers()
	return tx.Exec(updateDrain, runID)
}

// DrainIdleRun does so if the run has no turn, and reports whether it did.
func DrainIdleRun(tx *store.Tx, runID int64) (bool, error) {
	tx.PokePeers()
	n, err := tx.Change(updateDrainIdle, runID)
	return n > 0, err
}

// MaxWait is the longest wait of a queued turn. One that seems to wait for longer, or that was stored or began
// maxSkew later than now, may start: the clock was set back.
const MaxWait = 3_600_000 // ms

// maxSkew is how far ahead of now a stored time may be although the clock was not set back: another machine's clock may
// be ahead, and what was stored since the caller read its own is later, too.
const maxSkew = 60_000 // ms

// RunTurns returns the unanswered turns of a run, oldest first.
func RunTurns(ctx context.Context, r store.Reader, runID int64) ([]*msg.Turn, error) {
	return r.ReadTurns(ctx, queryRunTurns, runID)
}

// Answered is what the next prompts of a session depend on.
type Answered struct {
	ObservedUpto int64 // its prompts have shown observed rows up to this decision
	EndedAt      int64 // unix ms
}

// LastAnswered is the last finished turn of a session with an id below `before`, zero
// if there is none.
func LastAnswered(ctx context.Context, r store.Reader, folder, topic string, before int64) (a Answered, err error) {
	_, err = r.Get(ctx, []any{&a.ObservedUpto, &a.EndedAt}, queryLastAnswered, folder, topic, before)
	return a, err
}

// LastTurnAt is when the folder's last turn other than except began, 0 if there
// is none.
func LastTurnAt(ctx context.Context, r store.Reader, folder string, except int64) (int64, error) {
	return store.Value[int64](ctx, r, queryLastTurnAt, folder, except)
}

// PutTurn stores a turn, and sets its id, state and run. In this order:
//   - an idle run of its address takes it, if no turn waits that could come before
//     it and fewer than maxAgents runs are busy;
//   - the newest queued turn of its conversation takes its rows in, if that is of
//     the same address and place, no run has begun it, and the rows fit. Then
//     joined is true, and t becomes that turn;
//   - it is queued.
//
// t.RowCount and t.RowBytes are the size of its rows; one without a size takes in
// no rows and joins no turn. A turn with t.WaitsFor is not given to a run.
func PutTurn(tx *store.Tx, t *msg.Turn, maxAgents int) (joined bool, err error) {
	tx.Note(failpoint.PutTurn)
	t.State, t.RunID = msg.TurnQueued, 0
	run, err := runFor(tx, t, maxAgents)
	if err != nil {
		return false, err
	}
	if run != 0 {
		t.RunID, t.State, t.StartedAt = run, msg.TurnRunning, t.CreatedAt
	} else if joined, err = join(tx, t); err != nil || joined {
		return joined, err
	}
	if err = storeTurn(tx, t); err != nil || run == 0 {
		return false, err
	}
	return false, AttachNotes(tx, t)
}

func storeTurn(tx *store.Tx, t *msg.Turn) (err error) {
	t.ID, err = tx.Insert(insertTurn,
		store.Null(t.RunID), t.Kind, t.Folder, t.ChatJID, t.Topic, t.ThreadID, t.Place, store.Null(t.ReplyTo),
		t.TriggerMessageID, t.ClaimsEngagement, t.Surface, t.Ceiling, t.State, t.NotBefore, t.WaitsFor, t.RowCount,
		t.RowBytes,
		t.Depth, store.Null(t.RootTurnID), t.CreatedAt, store.Null(t.StartedAt))
	pokeForTurn(tx, t)
	return err
}

// pokeForTurn pokes the adapter, which shows typing, and routd if the turn claims
// engagement.
func pokeForTurn(tx *store.Tx, t *msg.Turn) {
	tx.PokePeers()
	if t.ClaimsEngagement {
		tx.Poke("routd")
	}
	pokeTyping(tx, t)
}

// pokeTyping pokes the adapter of a turn's chat, so that it starts or stops to
// show typing.
func pokeTyping(tx *store.Tx, t *msg.Turn) { tx.Poke(msg.DaemonOf(t.ChatJID)) }

// runFor returns the live run that a new turn can go to at once, 0 for none.
func runFor(tx *store.Tx, t *msg.Turn, maxAgents int) (run int64, err error) {
	if t.Kind == msg.Delegated || t.WaitsFor != "" {
		return 0, nil
	}
	_, err = tx.Find([]any{&run}, queryRunFor, t.Folder, t.Topic, t.ChatJID, t.ThreadID, t.Lane(), store.MinFailures,
		maxAgents)
	return run, err
}

// FreeSlot reports whether fewer than maxAgents runs of this process are busy. One that waits for the answer to a
// question is not.
func FreeSlot(tx *store.Tx, maxAgents int) (bool, error) {
	var busy int
	_, err := tx.Find([]any{&busy}, queryBusyRunsOf, tx.OwnProcess())
	return busy < maxAgents, err
}

// join adds a new turn's rows to the newest queued turn of its conversation.
func join(tx *store.Tx, t *msg.Turn) (bool, error) {
	if t.RowCount == 0 || t.Kind != msg.Conversation {
		return false, nil
	}
	old, err := store.First(tx.ReadTurns(store.Uncancelled(), queryNewestQueued, t.Lane(), t.ChatJID, t.Topic))
	if err != nil || old == nil || !takesIn(old, t) {
		return false, err
	}
	if stopped, err := stopped(tx, old); err != nil || stopped {
		return false, err
	}
	newer, err := newerTrigger(tx, old, t)
	if err != nil {
		return false, err
	}
	if newer {
		old.TriggerMessageID, old.ReplyTo, old.Surface, old.Ceiling = t.TriggerMessageID, t.ReplyTo, t.Surface,
			t.Ceiling
	}
	old.ClaimsEngagement = old.ClaimsEngagement || t.ClaimsEngagement
	if old.WaitsFor == "" { // else the first files' time holds for all: the turn waits no longer for being joined
		old.WaitsFor, old.NotBefore = t.WaitsFor, t.NotBefore
	}
	old.RowCount, old.RowBytes = old.RowCount+t.RowCount, old.RowBytes+t.RowBytes
	*t = *old
	pokeForTurn(tx, t)
	err = tx.Exec(updateJoin, store.Null(t.ReplyTo), t.TriggerMessageID, t.ClaimsEngagement, t.Surface, t.Ceiling,
		t.NotBefore,
		t.WaitsFor, t.RowCount, t.RowBytes, t.ID)
	return true, err
}

// takesIn reports whether a queued turn may take in the rows of a newer one.
func takesIn(old, t *msg.Turn) bool {
	return old.Kind == t.Kind && old.Address() == t.Address() && old.Place == t.Place &&
		old.Depth == t.Depth && old.RootTurnID == t.RootTurnID &&
		old.Attempts == 0 && old.StartedAt == 0 && (old.WaitsFor == "" || old.WaitsFor == msg.WaitsFiles) &&
		old.RowCount > 0 && old.RowCount+t.RowCount <= msg.MaxTurnRows && old.RowBytes+t.RowBytes <= msg.MaxTurnBytes
}

// newerTrigger reports whether the joined turn answers the newer rows' trigger: a
// turn answers its last mention or reply, else its last row.
func newerTrigger(tx *store.Tx, old, t *msg.Turn) (bool, error) {
	var addressed [2]bool
	for i, id := range []int64{old.TriggerMessageID, t.TriggerMessageID} {
		if _, err := tx.Find([]any{&addressed[i]}, queryAddressed, id); err != nil {
			return false, err
		}
	}
	return addressed[1] || !addressed[0], nil
}

// TakeTurn gives a queued turn to a live run. It returns ErrStale if the turn is
// not queued, or is covered by a /stop, or the run takes no more turns.
func TakeTurn(tx *store.Tx, id, runID, now int64) error {
	var live, alone bool
	var open int
	t, err := tx.Turn(store.Uncancelled(), id)
	if err != nil {
		return err
	}
	if _, err := tx.Find([]any{&live}, queryRunTakes, runID); err != nil {
		return err
	}
	if _, err := tx.Find([]any{&open, &alone}, queryRunLoad, runID); err != nil {
		return err
	}
	if t == nil || t.Alone() || !live || alone || open >= msg.MaxRunTurns {
		return fmt.Errorf("give turn %d to run %d: %w", id, runID, store.ErrStale)
	}
	return giveTurn(tx, t, runID, now)
}

func giveTurn(tx *store.Tx, t *msg.Turn, runID, now int64) error {
	tx.Note(failpoint.TakeTurn)
	stopped, err := stopped(tx, t)
	if err != nil {
		return err
	}
	if stopped || waits(t, now) {
		return fmt.Errorf("give turn %d to run %d: it is stopped or waits: %w", t.ID, runID, store.ErrStale)
	}
	n, err := tx.Change(updateTake, runID, now, t.ID)
	if err == nil && n == 0 {
		err = fmt.Errorf("give turn %d to run %d: %w", t.ID, runID, store.ErrStale)
	}
	if err != nil {
		return err
	}
	return AttachNotes(tx, t)
}

// waits reports whether a queued turn may not start yet. NextQueued has the same cases.
func waits(t *msg.Turn, now int64) bool {
	return t.NotBefore > now && t.NotBefore <= now+MaxWait && max(t.CreatedAt, t.StartedAt) <= now+maxSkew
}

// ending is how a turn ends.
type ending struct {
	state   msg.TurnState
	reason  msg.Reason
	kind    msg.ErrorKind // of the problem
	problem string
	// Of the last frame:
	replied      bool  // it has a message
	observedUpto int64 // the last decision that the prompt showed
	answeredWith int64 // the turn whose answer is for this one too, 0 for none
}

// endTurn sets an open turn's final state. The system messages that its prompt
// carried are deleted if it was answered; else they are released for the folder's
// next prompt, except the one about the turn's own new session.
func endTurn(tx *store.Tx, t *msg.Turn, e ending, now int64) error {
	tx.Note(failpoint.EndTurn)
	id := t.ID
	n, err := tx.Change(updateEndTurn, e.state, e.reason, e.problem, e.kind, now, id, e.replied, e.observedUpto,
		store.Null(e.answeredWith))
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("end turn %d: %w", id, store.ErrStale)
	}
	tx.TurnEnded(e.state, e.reason)
	tx.PokePeers()
	tx.Poke("routd")
	if e.state != msg.TurnCancelled { // CancelTurn does it, behind its replies
		if err := tx.Unmark(id, now); err != nil {
			return err
		}
	}
	if err := expireAsks(tx, id, now); err != nil {
		return err
	}
	if err := endRequest(tx, t, e.state, now); err != nil {
		return err
	}
	if err = tx.Exec(deleteSystem, id, e.state == msg.TurnDone); err != nil {
		return err
	}
	if e.state == msg.TurnDone { // the answer is a message now
		return tx.Exec(updateEndProgress, id)
	}
	return tx.Exec(updateReleaseSystem, id)
}

// CancelTurn ends an open turn and cancels its unsent replies. It returns
// ErrStale if the turn has ended already.
func CancelTurn(tx *store.Tx, id int64, reason msg.Reason, now int64) error {
	tx.Note(failpoint.CancelTurn)
	t, err := tx.Turn(store.Uncancelled(), id)
	if err != nil {
		return err
	}
	if t == nil {
		return fmt.Errorf("cancel turn %d: %w", id, store.ErrStale)
	}
	if err := endTurn(tx, t, ending{state: msg.TurnCancelled, reason: reason}, now); err != nil {
		return err
	}
	if err := CancelReplies(tx, id); err != nil {
		return err
	}
	return tx.Unmark(id, now)
}

// Requeue says how an open turn is queued again.
type Requeue struct {
	Attempt   bool         // it has used up an attempt
	WaitsFor  msg.WaitsFor // why it does not start before NotBefore
	NotBefore int64        // unix ms
	Kind      msg.ErrorKind
	Problem   string
}

// RequeueTurn queues an open turn again. It returns ErrStale if the turn has ended.
func RequeueTurn(tx *store.Tx, id int64, q Requeue) error {
	tx.Note(failpoint.RequeueTurn)
	tx.PokePeers()
	n, err := tx.Change(updateRequeue, q.Attempt, q.WaitsFor, q.NotBefore, q.Problem, q.Kind, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("requeue turn %d: %w", id, store.ErrStale)
	}
	if err == nil {
		err = tx.Exec(deleteTurnProgress, id)
	}
	if err != nil {
		return err
	}
	return releaseNotes(tx, id)
}

// ReviveTurn queues a failed or cancelled turn as if it had never run, or ends a
// queued turn's wait. It returns ErrStale in any other state.
func ReviveTurn(tx *store.Tx, id int64) error {
	n, err := tx.Change(updateRevive, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("revive turn %d: %w", id, store.ErrStale)
	}
	if err != nil {
		return err
	}
	tx.Poke("gated")
	return tx.Exec(deleteTurnProgress, id)
}

// CountDelegations is the number of turns delegated below a root turn.
func CountDelegations(ctx context.Context, r store.Reader, rootTurnID int64) (int, error) {
	return store.Value[int](ctx, r, queryDelegations, rootTurnID)
}

// RefusedSlots returns why the messages of the last slots of a reminder were refused, the newest first: "" for a slot
// whose messages were not, or were sent in part.
func RefusedSlots(ctx context.Context, r store.Reader, reminder int64, slots int) ([]string, error) {
	return store.All(ctx, r, store.One[string], queryRefusedSlots, reminder, slots)
}
