package rows

import (
	"context"
	"encoding/json"
	"fmt"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// The states of a preview. Only open ones change.
const (
	PreviewOpen    PreviewState = "open"    // its message shows the progress of the turn, or is being made
	PreviewFinal   PreviewState = "final"   // its message is the first part of an answer
	PreviewRemoved PreviewState = "removed" // its message is deleted, or was never made
	// it may have a message that stays, since its id is not known or no longer valid
	PreviewLost PreviewState = "lost"
)

// WrittenBelow reports whether users have written below the message of a preview.
func WrittenBelow(ctx context.Context, r store.Reader, p *Preview) (bool, error) {
	return store.Value[bool](ctx, r, queryWrittenBelow, p.TurnID, p.Lane.ChatJID, p.Lane.ThreadID, p.CreatedAt)
}

// BeginPreview stores that the message of a preview is going to be made. It returns ErrStale if the turn has a preview
// or does not run, or if its lane has rows to deliver.
func BeginPreview(tx *store.Tx, turnID, now int64) (*Preview, error) {
	tx.Note(failpoint.BeginPreview)
	t, err := RunningTurn(store.Uncancelled(), tx.Reader, turnID)
	if err != nil {
		return nil, err
	}
	if t == nil || t.Waiting {
		return nil, fmt.Errorf("preview of turn %d: %w", turnID, store.ErrStale)
	}
	shown, err := LanePreviews(store.Uncancelled(), tx.Reader, t.Lane)
	if err != nil {
		return nil, err
	}
	for _, p := range shown {
		if p.TurnID == turnID {
			return nil, fmt.Errorf("preview of turn %d: %w", turnID, store.ErrStale)
		}
	}
	p := &Preview{TurnID: t.ID, Lane: t.Lane, ReplyTo: t.ReplyTo, State: PreviewOpen, CreatedAt: now}
	p.ID, err = tx.Insert(insertPreview, p.TurnID, p.Lane.ChatJID, p.Lane.ThreadID, p.ReplyTo, p.State, now)
	return p, err
}

// KeepPreview stores the id of a preview's message. It returns ErrStale if the preview is not open, or its chat was
// moved meanwhile, where the id says nothing.
func KeepPreview(tx *store.Tx, p *Preview, platformID string, now int64) error {
	tx.Note(failpoint.KeepPreview)
	return changePreview(tx, p.ID, updateKeepPreview, platformID, now, p.ID, p.Lane.ChatJID)
}

// EndPreview stores the end of a preview, final excepted. It returns ErrStale if the preview is not open.
func EndPreview(tx *store.Tx, id int64, state PreviewState, now int64) error {
	tx.Note(failpoint.EndPreview)
	return changePreview(tx, id, updateEndPreview, state, now, id)
}

// OvertakePreview stores that an open preview must be removed.
func OvertakePreview(tx *store.Tx, id, now int64) error {
	return changePreview(tx, id, updateEndingPreview, now, id)
}

func changePreview(tx *store.Tx, id int64, query string, args ...any) error {
	n, err := tx.Change(query, args...)
	if err == nil && n == 0 {
		err = fmt.Errorf("preview %d: %w", id, store.ErrStale)
	}
	return err
}

// TakeOverPreview makes the message of an open preview the first part of an outbound row, which was claimed in the same
// transaction and has not been sent.
func TakeOverPreview(tx *store.Tx, p *Preview, messageID, now int64) error {
	if err := changePreview(tx, p.ID, updateEndPreview, PreviewFinal, now, p.ID); err != nil {
		return err
	}
	return tx.PutDelivery(store.Delivery{MessageID: messageID, State: msg.OutSending, PlatformID: p.PlatformID}, now)
}

// GiveUpPreview opens the preview of a turn again, to be removed: its message has not become an answer. It does nothing
// if no answer has taken over that message.
func GiveUpPreview(tx *store.Tx, turnID int64, platformID string, now int64) error {
	return tx.Exec(updateReopenPreview, now, turnID, platformID)
}

// PreviewState is the state of a preview.
type PreviewState string

// Preview is one row of previews: a message that shows the progress of a turn.
type Preview struct {
	ID         int64
	TurnID     int64
	Lane       store.Lane
	PlatformID string // of the message, "" while it is not known
	ReplyTo    string // platform id of the message that it answers, "" for none
	State      PreviewState
	Ending     bool // it is to be removed, whatever its turn does
	CreatedAt  int64
}

// PreviewMode is how much users may see of a turn before it answers.
type PreviewMode string

// The modes.
const (
	PreviewText PreviewMode = "live"   // the answer as it grows
	PreviewLine PreviewMode = "status" // one line that says what the agent does
	PreviewOff  PreviewMode = "off"
)

// previewMode is the mode that a group's configuration sets, or else that of its kind of chat. gated reports an invalid
// configuration; no agent runs then.
func previewMode(config string, kind msg.ChatKind, in store.Lane) PreviewMode {
	c, _ := groupconfig.Parse(json.RawMessage(config))
	return PreviewMode(c.Progress.In(kind == msg.ChatDM || kind == msg.ChatWeb || in.ThreadID != ""))
}

// PreviewTurn is a running turn, with what decides whether and how its progress is shown.
type PreviewTurn struct {
	ID     int64
	Kind   msg.TurnKind
	Folder string
	Topic  string
	Lane   store.Lane
	// of a preview that is made now, "" for none: only the first message of a turn answers another one
	ReplyTo    string
	Frames     int
	StartedAt  int64
	ProgressAt int64 // when its progress was stored last, unix ms, 0 for never
	Mode       PreviewMode
	Behind     bool // its agent has an older turn
	Waiting    bool // its lane has rows to deliver
}

func scanPreviewTurn(scan store.Scan) (t PreviewTurn, err error) {
	var config string
	var chat msg.ChatKind
	err = scan(&t.ID, &t.Kind, &t.Folder, &t.Topic, &t.Lane.ChatJID, &t.Lane.ThreadID, &t.ReplyTo, &t.Frames,
		&t.StartedAt, &t.ProgressAt, &chat, &config, &t.Behind, &t.Waiting)
	if t.Frames > 0 {
		t.ReplyTo = ""
	}
	if chat == "" { // no adapter has described it
		chat = msg.KindOfJID(t.Lane.ChatJID)
	}
	t.Mode = previewMode(config, chat, t.Lane)
	return t, err
}

// PreviewTurns lists the running turns of a platform that answer their chat: not those that work for another group.
func PreviewTurns(ctx context.Context, r store.Reader, platform string) (turns []PreviewTurn, err error) {
	all, err := store.All(ctx, r, scanPreviewTurn, queryPreviewTurns, platform+":", platform+";")
	for _, t := range all {
		if t.answersChat() {
			turns = append(turns, t)
		}
	}
	return turns, err
}

func (t *PreviewTurn) answersChat() bool {
	turn := msg.Turn{Kind: t.Kind, Topic: t.Topic}
	return t.Kind == msg.Conversation && !turn.WorksForGroup()
}

// RunningTurn returns a running turn, nil if the turn does not run or answers no chat.
func RunningTurn(ctx context.Context, r store.Reader, id int64) (*PreviewTurn, error) {
	all, err := store.All(ctx, r, scanPreviewTurn, queryPreviewTurn, id)
	if err != nil || len(all) == 0 || !all[0].answersChat() {
		return nil, err
	}
	return &all[0], nil
}

func scanPreview(scan store.Scan) (p Preview, err error) {
	err = scan(&p.ID, &p.TurnID, &p.Lane.ChatJID, &p.Lane.ThreadID, &p.PlatformID, &p.ReplyTo, &p.State, &p.Ending,
		&p.CreatedAt)
	return p, err
}

// OpenPreviews lists the open previews of a platform.
func OpenPreviews(ctx context.Context, r store.Reader, platform string) ([]Preview, error) {
	return store.All(ctx, r, scanPreview, queryOpenPreviews, platform+":", platform+";")
}

// LanePreviews lists the open previews of a lane.
func LanePreviews(ctx context.Context, r store.Reader, l store.Lane) ([]Preview, error) {
	return store.All(ctx, r, scanPreview, queryLanePreviews, l.ChatJID, l.ThreadID)
}

// ShownPreview returns the open preview that a message of a chat is, nil if it is none.
func ShownPreview(ctx context.Context, r store.Reader, chatJID, platformID string) (*Preview, error) {
	shown, err := store.All(ctx, r, scanPreview, queryPreviewShown, chatJID, platformID)
	if err != nil || len(shown) == 0 {
		return nil, err
	}
	return &shown[0], nil
}
