package store

import (
	"cmp"
	"strings"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
)

// halfAnswer is the row that keeps what users have seen of the answer of a turn that a /stop is going to cancel, and
// says who has stopped it; nil if they have seen nothing. It takes the place of the preview.
func (tx *Tx) halfAnswer(s *Stop, t *msg.Turn, now int64) (*msg.Message, error) {
	if s.By == "" || t.State != msg.TurnRunning {
		return nil, nil
	}
	p, err := tx.Progress(uncancelled(), t.ID)
	if err != nil || p == nil || strings.TrimSpace(p.Text) == "" {
		return nil, err
	}
	shown, err := tx.PreviewTurn(uncancelled(), t.ID)
	if err != nil || shown == nil {
		return nil, err
	}
	replyTo := shown.ReplyTo
	if platform, _ := msg.SplitJID(t.ChatJID); platform != msg.PlatformWeb { // which has no previews to store
		config, _ := groupconfig.Parse(shown.Config)
		if config.Progress.In(shown.ChatKind == msg.ChatDM || t.ThreadID != "") != groupconfig.ProgressLive {
			return nil, nil
		}
		open, err := tx.LanePreviews(uncancelled(), shown.Lane)
		if err != nil {
			return nil, err
		}
		seen := false
		for _, o := range open {
			if o.TurnID == t.ID && o.PlatformID != "" && !o.Ending {
				seen, replyTo = true, o.ReplyTo
			}
		}
		if !seen {
			return nil, nil
		}
	}
	by, err := tx.Message(uncancelled(), s.BeforeMessage)
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
		ReplyToID: replyTo, TurnID: t.ID, Timestamp: now, ReceivedAt: now, Source: msg.SourceNotice,
		OutState: OutStateOf(t.ChatJID),
	}, nil
}
