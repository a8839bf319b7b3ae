package outbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
	"arizuko/slakd/internal/slackapi"
)

// The progress of a turn is shown by a message. In threads it is a stream, which Slack shows as it grows; its text can
// only be appended to, and Slack ends it after about five minutes. So a stream that is too old, or whose text has
// changed, is stopped, and the same message is edited from then on, as everywhere else: there is one message at any
// time, and its id never changes.

const (
	// streamEvery and updateEvery are the smallest times between two changes of a preview. Slack takes 100 appended
	// pieces and 50 edits a minute in the workspace, which all previews share, see appendShare and updateShare. Half of
	// the edits are left to answers that take a preview over.
	streamEvery = time.Second
	updateEvery = 3 * time.Second
	appendShare = time.Minute / 80
	updateShare = time.Minute / 25
	// maxBegun is how many previews are begun in a minute, and maxStarted how many of them as streams: each answer that
	// takes one over needs an edit, and Slack stops 20 streams a minute.
	maxBegun   = 20
	maxStarted = 15
	// lineRoom is left in an edited preview for the line about the agent's work.
	lineRoom = 600
	// previewTag is the type of the metadata of previews. It tells a search that they are no parts of rows.
	previewTag = "arizuko_preview"
)

// PreviewEvery implements adapter.Previewer.
func (s *Sender) PreviewEvery(in store.Lane) time.Duration {
	streams, others, isStream := s.previews.count(in)
	if in.ThreadID == "" || !isStream {
		return max(updateEvery, time.Duration(others)*updateShare)
	}
	return max(streamEvery, time.Duration(streams)*appendShare)
}

// ShowPreview implements adapter.Previewer.
func (s *Sender) ShowPreview(ctx context.Context, p *adapter.Preview) (platformID string, err error) {
	if p.PlatformID == "" {
		platformID, err = s.beginPreview(ctx, p)
	} else {
		platformID, err = p.PlatformID, s.changePreview(ctx, p)
	}
	if err != nil {
		return "", slackapi.Failure(fmt.Errorf("preview: %w", err))
	}
	return platformID, nil
}

// beginPreview makes the message of a preview: a stream where Slack takes one, else a text.
func (s *Sender) beginPreview(ctx context.Context, p *adapter.Preview) (ts string, err error) {
	stream := p.Mode == msg.PreviewText && p.In.ThreadID != "" && !s.previews.streamsRefused(p.In)
	stream, wait := s.previews.permit(stream, time.Now())
	if wait > 0 {
		return "", &adapter.Failure{Class: msg.Rate, After: wait, Err: errors.New("too many previews in a minute")}
	}
	if stream {
		ts, err = s.startStream(ctx, p)
		switch {
		case err == nil:
			s.previews.add(ts, &preview{in: p.In, began: time.Now(), isStream: true, plan: adapter.PreviewStart})
			return ts, nil
		case !isPermanent(err), slices.Contains(threadCodes(), slackapi.Code(err)):
			return "", err
		}
		if s.previews.refuseStreams(p.In, err) {
			s.Log.Warn("streams are refused; answers are shown by edits", "chat", p.In.ChatJID, "thread",
				p.In.ThreadID, "err", slackapi.Explain(err))
		}
	}
	_, ts, err = s.API.PostMessageContext(ctx, channel(p.In.ChatJID),
		slackgo.MsgOptionText(adapter.PreviewStart, false), slackgo.MsgOptionTS(p.In.ThreadID),
		noLinkPreviews(), slackgo.MsgOptionMetadata(slackgo.SlackMetadata{EventType: previewTag,
			EventPayload: map[string]any{"turn": strconv.FormatInt(p.Turn, 10)}}))
	if err == nil {
		s.previews.add(ts, &preview{in: p.In})
	}
	return ts, err
}

// startStream starts a stream for the user whose message the turn answers. Slack needs to know that in channels.
func (s *Sender) startStream(ctx context.Context, p *adapter.Preview) (ts string, err error) {
	options := []slackgo.MsgOption{
		slackgo.MsgOptionTS(p.In.ThreadID), slackgo.MsgOptionTaskDisplayMode(slackgo.TaskDisplayModePlan),
		slackgo.MsgOptionChunks(slackgo.NewPlanUpdateChunk(adapter.PreviewStart)),
	}
	if msg.KindOfJID(p.In.ChatJID) != msg.ChatDM {
		user, team, err := s.recipient(ctx, p.Turn)
		if err != nil {
			return "", err
		}
		options = append(options, slackgo.MsgOptionRecipientUserID(user), slackgo.MsgOptionRecipientTeamID(team))
	}
	_, ts, err = s.API.StartStreamContext(ctx, channel(p.In.ChatJID), options...)
	return ts, err
}

// recipient is the user whose message a turn answers, and the team of the bot. Where a bot or an agent has sent it, the
// error is permanent.
func (s *Sender) recipient(ctx context.Context, turn int64) (user, team string, err error) {
	t, err := s.Store.Turn(ctx, turn)
	var trigger *msg.Message
	if err == nil && t != nil {
		trigger, err = s.Store.Message(ctx, t.TriggerMessageID)
	}
	if err != nil {
		return "", "", &adapter.Failure{Class: msg.Transient, Err: err}
	}
	if trigger != nil && !trigger.IsBot {
		user, _ = strings.CutPrefix(trigger.Sender, s.Platform+":")
	}
	if user == "" || strings.Contains(user, ":") {
		return "", "", &adapter.Failure{Class: msg.Permanent,
			Err: fmt.Errorf("no user to stream to: turn %d answers no user of Slack", turn)}
	}
	me, err := s.API.AuthTestContext(ctx)
	if err != nil { // no message was begun, whatever the answer
		return "", "", fmt.Errorf("team of the bot: %w: %w: %w", adapter.ErrUnsent, slackapi.ErrUnseen, err)
	}
	return user, me.TeamID, nil
}

// changePreview shows the news.
func (s *Sender) changePreview(ctx context.Context, p *adapter.Preview) error {
	known := s.previews.of(p.PlatformID, p.In)
	if chunks, ok := known.next(p, time.Now()); ok {
		if len(chunks) == 0 {
			return nil
		}
		_, _, err := s.API.AppendStreamContext(ctx, channel(p.In.ChatJID), p.PlatformID,
			slackgo.MsgOptionChunks(chunks...))
		switch {
		case err == nil:
			known.taken(chunks)
			return nil
		case slackapi.Code(err) == slackapi.MessageGone:
			return err
		case isPermanent(err): // the stream has ended, or the piece is refused
			s.previews.end(known, false)
		default:
			if slackapi.Failure(err).Class == msg.Ambiguous { // the text of the stream is not known
				s.previews.end(known, false)
			}
			return err
		}
	}
	if err := s.endStream(ctx, p.In.ChatJID, p.PlatformID, known); err != nil {
		return err
	}
	text := previewText(p)
	update := func(blocks slackgo.MsgOption) error {
		_, _, _, err := s.API.UpdateMessageContext(ctx, channel(p.In.ChatJID), p.PlatformID,
			slackgo.MsgOptionText(text, false), blocks)
		return err
	}
	err := update(slackapi.WithButtons(text, []slackapi.Button{{Label: msg.StopLabel, Data: msg.StopData(p.Turn)}}))
	if strings.HasPrefix(slackapi.Code(err), "invalid_blocks") {
		err = update(slackapi.WithoutBlocks())
	}
	return err
}

// endStream makes a message one that can be edited and deleted. After a start it is not known whether it is a stream.
func (s *Sender) endStream(ctx context.Context, chatJID, ts string, known *preview) error {
	if known != nil && !known.isStream {
		return nil
	}
	_, _, err := s.API.StopStreamContext(ctx, channel(chatJID), ts)
	if err != nil && !slices.Contains([]string{"message_not_in_streaming_state", "stopped_by_user"},
		slackapi.Code(err)) {
		return err
	}
	s.previews.end(known, true)
	return nil
}

// previewText is the text of an edited preview above its button: the end of the answer so far, which may be longer than
// a section, and the line about the agent's work.
func previewText(p *adapter.Preview) string {
	var shown []string
	if text := render.SlackTail(p.Text, maxSection-lineRoom); text != "" {
		shown = append(shown, text)
	}
	if line := render.SlackTail(p.LineMarkdown(), lineRoom-10); line != "" {
		shown = append(shown, line)
	}
	return cmp.Or(strings.Join(shown, "\n\n"), adapter.PreviewStart)
}

// RemovePreview implements adapter.Previewer.
func (s *Sender) RemovePreview(ctx context.Context, in store.Lane, platformID string) error {
	err := s.endStream(ctx, in.ChatJID, platformID, s.previews.find(platformID))
	if err == nil {
		err = s.API.Delete(ctx, channel(in.ChatJID), platformID)
	}
	if err != nil && slackapi.Code(err) != slackapi.MessageGone {
		return slackapi.Failure(fmt.Errorf("preview: %w", err))
	}
	s.previews.forget(platformID)
	return nil
}

// TakeOver implements adapter.Previewer.
func (s *Sender) TakeOver(part adapter.Part, platformID string) (edit adapter.Part, ok bool) {
	c := part.(call)
	if c.method != postMessage || slackapi.MessageTS(platformID) != platformID || platformID == "" {
		return nil, false
	}
	c.method, c.ts, c.takesOver = updateMessage, platformID, true
	return c, true
}

// takeOver makes the message of a preview into that of a call.
func (s *Sender) takeOver(ctx context.Context, c call) (ts string, err error) {
	known := s.previews.find(c.ts)
	jid := msg.JID(s.Platform, c.channel)
	if err := s.endStream(ctx, jid, c.ts, known); err != nil {
		return "", err
	}
	_, _, _, err = s.API.UpdateMessageContext(ctx, c.channel, c.ts, slackgo.MsgOptionText(c.text, false), c.below(),
		slackgo.MsgOptionMetadata(c.tag.Metadata()))
	if err != nil {
		return "", err
	}
	s.previews.forget(c.ts)
	return c.ts, nil
}
