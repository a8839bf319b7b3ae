package inbound

import (
	"encoding/json"
	"fmt"
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
	Subtype     string          `json:"subtype"`
	Channel     string          `json:"channel"`
	ChannelType string          `json:"channel_type"`
	TS          string          `json:"ts"`
	ThreadTS    string          `json:"thread_ts"`
	ParentUser  string          `json:"parent_user_id"`
	User        string          `json:"user"`
	BotID       string          `json:"bot_id"`
	BotProfile  *BotProfile     `json:"bot_profile"`
	Username    string          `json:"username"` // chosen by a bot
	Text        string          `json:"text"`
	Edited      *Edited         `json:"edited"`
	Files       []File          `json:"files"`
	Attachments []Attachment    `json:"attachments"`
	Blocks      json.RawMessage `json:"blocks"`
	Root        *Message        `json:"root"`
	Changed     *Message        `json:"message"`
	Previous    *Message        `json:"previous_message"`
	DeletedTS   string          `json:"deleted_ts"`
	Inviter     string          `json:"inviter"` // of a channel_join
	EventTS     string          `json:"event_ts"`
}

// IsPost reports whether an event is a message, not a change of one.
func (m *Message) IsPost() bool {
	return m.Channel != "" && m.Subtype != "message_changed" && m.Subtype != "message_deleted" && isTS(m.TS)
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
	ID          string `json:"id"`
	Name        string `json:"name"`
	Title       string `json:"title"`
	Mimetype    string `json:"mimetype"`
	Size        int64  `json:"size"`
	DurationMS  int64  `json:"duration_ms"` // of audio and video
	Mode        string `json:"mode"`
	Access      string `json:"file_access"`
	External    bool   `json:"is_external"`
	URL         string `json:"url_private"`
	DownloadURL string `json:"url_private_download"`
}

// Attachment is a card below a message: a bot's text, a link preview, or a forwarded message.
type Attachment struct {
	Fallback   string          `json:"fallback"`
	Pretext    string          `json:"pretext"`
	Title      string          `json:"title"`
	Text       string          `json:"text"`
	AuthorName string          `json:"author_name"`
	AuthorID   string          `json:"author_id"`
	IsShare    bool            `json:"is_share"`      // it was forwarded
	IsUnfurl   bool            `json:"is_msg_unfurl"` // the text has a link to it
	Files      []File          `json:"files"`
	Blocks     json.RawMessage `json:"blocks"`
}

// quotes reports whether the card is a message: one that was forwarded, or that the text links to.
func (a *Attachment) quotes() bool { return a.IsShare || a.IsUnfurl }

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
