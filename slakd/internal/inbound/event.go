package inbound

import (
	"encoding/json"
	"fmt"
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
	EventTS     string          `json:"event_ts"`
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
	Name        string `json:"name"`
	Title       string `json:"title"`
	Mimetype    string `json:"mimetype"`
	Size        int64  `json:"size"`
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
	IsShare    bool            `json:"is_share"`
	Blocks     json.RawMessage `json:"blocks"`
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
