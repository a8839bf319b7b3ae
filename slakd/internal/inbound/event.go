package inbound

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Event is the payload of an event, which is the same on the socket and in the Events API. At most one of
// the pointers is set, none for an event that is not read.
type Event struct {
	ID   string // the same each time it is sent
	Time int64  // unix seconds

	Message  *Message
	Reaction *Reaction
	Member   *Member
	Pane     *Pane
	Stopped  *Stopped
	Renamed  *Channel // a channel
	User     *User    // whose profile has changed
}

// Message is a message, or a change of one: Changed is its new version.
type Message struct {
	Subtype     string           `json:"subtype"`
	Channel     string           `json:"channel"`
	ChannelType string           `json:"channel_type"`
	TS          string           `json:"ts"`
	ThreadTS    string           `json:"thread_ts"`
	ParentUser  string           `json:"parent_user_id"`
	User        string           `json:"user"`
	BotID       string           `json:"bot_id"`
	AppID       string           `json:"app_id"` // of what an app posts, as itself or with a user's token
	BotProfile  *BotProfile      `json:"bot_profile"`
	Username    string           `json:"username"` // chosen by a bot
	Text        string           `json:"text"`
	Edited      *Edited          `json:"edited"`
	Files       list[File]       `json:"files"`
	Attachments list[Attachment] `json:"attachments"`
	Blocks      json.RawMessage  `json:"blocks"`
	Root        *Message         `json:"root"`
	Changed     *Message         `json:"message"`
	Previous    *Message         `json:"previous_message"`
	DeletedTS   string           `json:"deleted_ts"`
	Inviter     string           `json:"inviter"` // of a channel_join
	EventTS     string           `json:"event_ts"`
}

// IsPost reports whether an event is a message, not a change of one.
func (m *Message) IsPost() bool {
	return m.Channel != "" && m.Subtype != "message_changed" && m.Subtype != "message_deleted" && isTS(m.TS)
}

// list is a list whose items are decoded one by one: an invalid one is left out, and so are those beyond maxItems.
type list[T any] []T

// UnmarshalJSON decodes a list; it never fails.
func (l *list[T]) UnmarshalJSON(raw []byte) error {
	*l = decodeAll[T](raw)
	return nil
}

// decodeAll decodes a list like list does.
func decodeAll[T any](raw json.RawMessage) (all []T) {
	var items []json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &items) != nil {
		return nil
	}
	for _, item := range items[:min(len(items), maxItems)] {
		var one T
		if json.Unmarshal(item, &one) == nil {
			all = append(all, one)
		}
	}
	return all
}

// WithoutQuotes is the message before Slack added messages that its text links to.
func (m *Message) WithoutQuotes() *Message {
	before := *m
	before.Attachments = slices.DeleteFunc(slices.Clone(m.Attachments), func(a Attachment) bool { return a.quotes() })
	return &before
}

// Time is when a message was sent.
func (m *Message) Time() time.Time { return time.UnixMilli(millis(m.TS)) }

// Join is the bot's own join that a message of the history reports, nil if it reports none.
func (m *Message) Join(me Self) *Member {
	if m.Subtype != "channel_join" && m.Subtype != "group_join" || !me.is(m.User, "") {
		return nil
	}
	return &Member{User: m.User, Channel: m.Channel, Inviter: m.Inviter, EventTS: m.TS}
}

// BotProfile contains a bot's name.
type BotProfile struct {
	Name string `json:"name"`
}

// Edited is the last edit of a message.
type Edited struct {
	TS string `json:"ts"`
}

// File is a file of a message.
type File struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	AltText     string          `json:"alt_txt"` // a description for those who do not see an image
	Mimetype    string          `json:"mimetype"`
	Subtype     string          `json:"subtype"`            // slack_audio and slack_video are recorded in Slack
	DisplayType string          `json:"media_display_type"` // "audio", though Mimetype may say video
	Size        int64           `json:"size"`
	DurationMS  int64           `json:"duration_ms"` // of audio and video
	Mode        string          `json:"mode"`
	Access      string          `json:"file_access"`
	External    bool            `json:"is_external"`
	URL         string          `json:"url_private"`
	DownloadURL string          `json:"url_private_download"`
	Parts       list[EmailPart] `json:"attachments"` // of an email
}

// EmailPart is a file that an email has, which is itself a file of a message.
type EmailPart struct {
	Name     string `json:"filename"`
	Mimetype string `json:"mimetype"`
	Size     int64  `json:"size"`
	URL      string `json:"url"`
}

// Attachment is a card below a message: a bot's text, what Slack cannot show as text, such as a table that a user
// pasted, a link preview, or a forwarded message.
type Attachment struct {
	Fallback      string           `json:"fallback"`
	Pretext       string           `json:"pretext"`
	Title         string           `json:"title"`
	TitleLink     string           `json:"title_link"`
	Text          string           `json:"text"`
	AuthorName    string           `json:"author_name"`
	AuthorSubname string           `json:"author_subname"`
	AuthorID      string           `json:"author_id"`
	Footer        string           `json:"footer"`
	ImageURL      string           `json:"image_url"`
	FromURL       string           `json:"from_url"` // of a preview: the link in the text
	OriginalURL   string           `json:"original_url"`
	AppURL        string           `json:"app_unfurl_url"`
	IsShare       bool             `json:"is_share"`      // it was forwarded
	IsUnfurl      bool             `json:"is_msg_unfurl"` // the text has a link to it
	Fields        list[CardField]  `json:"fields"`
	Actions       list[CardAction] `json:"actions"`
	Files         list[File]       `json:"files"`
	Blocks        json.RawMessage  `json:"blocks"`
	Messages      json.RawMessage  `json:"message_blocks"` // the message that is shown
	Attachments   json.RawMessage  `json:"attachments"`    // of a forwarded message
}

// CardField is a name and a value in a card.
type CardField struct {
	Title string `json:"title"`
	Value string `json:"value"`
}

// CardAction is a button or a menu of a card.
type CardAction struct {
	Type string `json:"type"`
	Text string `json:"text"`
	URL  string `json:"url"`
}

// messages are those that the card shows.
func (a *Attachment) messages() (all []Message) {
	for _, shown := range decodeAll[struct{ Message Message }](a.Messages) {
		all = append(all, shown.Message)
	}
	return all
}

// quotes reports whether the card is a message: one that was forwarded, or that the text links to.
func (a *Attachment) quotes() bool { return a.IsShare || a.IsUnfurl }

// previews reports whether Slack, or an app, has made the card of a link in the text.
func (a *Attachment) previews() bool {
	return !a.quotes() && cmp.Or(a.FromURL, a.OriginalURL, a.AppURL) != ""
}

// Reaction is a reaction that was added or removed.
type Reaction struct {
	Removed bool   `json:"-"`
	User    string `json:"user"`
	Name    string `json:"reaction"` // without colons
	Item    struct {
		Type    string `json:"type"`
		Channel string `json:"channel"`
		TS      string `json:"ts"`
	} `json:"item"`
	EventTS string `json:"event_ts"`
}

// Member is a user who joined or left.
type Member struct {
	Left    bool   `json:"-"`
	User    string `json:"user"`
	Channel string `json:"channel"`
	Inviter string `json:"inviter"`
	EventTS string `json:"event_ts"`
}

// Pane is a thread that was opened in an assistant's pane.
type Pane struct {
	User    string `json:"user_id"`
	Channel string `json:"channel_id"`
	TS      string `json:"thread_ts"`
}

// Stopped is a click on the button that stops the agent in a thread.
type Stopped struct {
	User    string `json:"user"`
	Channel string `json:"channel"`
	Thread  string `json:"thread_ts"`
	EventTS string `json:"event_ts"`
}

// Channel is a channel with its name.
type Channel struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// User is a user, of which only the id is read.
type User struct {
	ID string `json:"id"`
}

// Decode decodes the payload of an event.
func Decode(payload []byte) (*Event, error) {
	var outer struct {
		ID    string          `json:"event_id"`
		Time  int64           `json:"event_time"`
		Event json.RawMessage `json:"event"`
	}
	if err := json.Unmarshal(payload, &outer); err != nil {
		return nil, fmt.Errorf("invalid event: %w", err)
	}
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(outer.Event, &kind); err != nil {
		return nil, fmt.Errorf("event %s: %w", outer.ID, err)
	}
	e := &Event{ID: outer.ID, Time: outer.Time}
	into := e.of(kind.Type)
	if into == nil {
		return e, nil
	}
	if err := json.Unmarshal(outer.Event, into); err != nil {
		return nil, fmt.Errorf("event %s, %s: %w", outer.ID, kind.Type, err)
	}
	return e, nil
}

// of allocates the field for an event of a kind, nil if the kind is not read.
func (e *Event) of(kind string) any {
	switch kind {
	case "message", "app_mention":
		e.Message = &Message{}
		return e.Message
	case "reaction_added", "reaction_removed":
		e.Reaction = &Reaction{Removed: kind == "reaction_removed"}
		return e.Reaction
	case "member_joined_channel", "member_left_channel":
		e.Member = &Member{Left: kind == "member_left_channel"}
		return e.Member
	case "assistant_thread_started":
		e.Pane = &Pane{}
		return &struct {
			Pane *Pane `json:"assistant_thread"`
		}{e.Pane}
	case "agent_session_stopped":
		e.Stopped = &Stopped{}
		return e.Stopped
	case "channel_rename", "group_rename":
		e.Renamed = &Channel{}
		return &struct {
			Channel *Channel `json:"channel"`
		}{e.Renamed}
	case "user_change":
		e.User = &User{}
		return &struct {
			User *User `json:"user"`
		}{e.User}
	}
	return nil
}
