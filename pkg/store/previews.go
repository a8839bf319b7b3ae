package store

import (
	"context"
	"encoding/json"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
)

// PreviewState is the state of a preview.
type PreviewState string

// Preview is one row of previews: a message that shows the progress of a turn.
type Preview struct {
	ID         int64
	TurnID     int64
	Lane       Lane
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
func previewMode(config string, kind msg.ChatKind, in Lane) PreviewMode {
	c, _ := groupconfig.Parse(json.RawMessage(config))
	return PreviewMode(c.Progress.In(kind == msg.ChatDM || kind == msg.ChatWeb || in.ThreadID != ""))
}

// PreviewTurn is a running turn, with what decides whether and how its progress is shown.
type PreviewTurn struct {
	ID     int64
	Kind   msg.TurnKind
	Folder string
	Topic  string
	Lane   Lane
	// of a preview that is made now, "" for none: only the first message of a turn answers another one
	ReplyTo    string
	Frames     int
	StartedAt  int64
	ProgressAt int64 // when its progress was stored last, unix ms, 0 for never
	Mode       PreviewMode
	Behind     bool // its agent has an older turn
	Waiting    bool // its lane has rows to deliver
}

func scanPreviewTurn(scan Scan) (t PreviewTurn, err error) {
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
func (r Reader) PreviewTurns(ctx context.Context, platform string) (turns []PreviewTurn, err error) {
	all, err := All(ctx, r, scanPreviewTurn, queryPreviewTurns, platform+":", platform+";")
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

// PreviewTurn returns a running turn, nil if the turn does not run or answers no chat.
func (r Reader) PreviewTurn(ctx context.Context, id int64) (*PreviewTurn, error) {
	all, err := All(ctx, r, scanPreviewTurn, queryPreviewTurn, id)
	if err != nil || len(all) == 0 || !all[0].answersChat() {
		return nil, err
	}
	return &all[0], nil
}

func scanPreview(scan Scan) (p Preview, err error) {
	err = scan(&p.ID, &p.TurnID, &p.Lane.ChatJID, &p.Lane.ThreadID, &p.PlatformID, &p.ReplyTo, &p.State, &p.Ending,
		&p.CreatedAt)
	return p, err
}

// OpenPreviews lists the open previews of a platform.
func (r Reader) OpenPreviews(ctx context.Context, platform string) ([]Preview, error) {
	return All(ctx, r, scanPreview, queryOpenPreviews, platform+":", platform+";")
}

// LanePreviews lists the open previews of a lane.
func (r Reader) LanePreviews(ctx context.Context, l Lane) ([]Preview, error) {
	return All(ctx, r, scanPreview, queryLanePreviews, l.ChatJID, l.ThreadID)
}

// ShownPreview returns the open preview that a message of a chat is, nil if it is none.
func (r Reader) ShownPreview(ctx context.Context, chatJID, platformID string) (*Preview, error) {
	shown, err := All(ctx, r, scanPreview, queryPreviewShown, chatJID, platformID)
	if err != nil || len(shown) == 0 {
		return nil, err
	}
	return &shown[0], nil
}
