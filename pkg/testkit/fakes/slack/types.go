package slack

import "encoding/json"

// User is a user or a bot.
type User struct {
	ID          string
	Name        string // the handle
	RealName    string
	DisplayName string
	BotID       string // of bots
	AppID       string // of bots that are apps
	Admin       bool   // of the workspace
}

// IsBot reports whether the user is a bot.
func (u User) IsBot() bool { return u.BotID != "" }

// Mention is the text on the wire that mentions the user.
func (u User) Mention() string { return "<@" + u.ID + ">" }

// Kinds of Channel.
const (
	Public  = "channel"
	Private = "group"
	DM      = "im"
	GroupDM = "mpim"
)

// Channel is a conversation of any kind.
type Channel struct {
	ID       string
	Kind     string // Public, Private, DM or GroupDM: channel_type on the wire
	Name     string // of a DM, empty
	With     string // of a DM, the user's id
	Creator  string
	Topic    string
	Archived bool
	Created  int64 // seconds since 1970
}

// Message is one message, as in answers and events.
type Message struct {
	Type         string          `json:"type"`
	Subtype      string          `json:"subtype,omitempty"`
	User         string          `json:"user,omitempty"`
	BotID        string          `json:"bot_id,omitempty"`
	AppID        string          `json:"app_id,omitempty"`
	Username     string          `json:"username,omitempty"`
	Text         string          `json:"text"`
	TS           string          `json:"ts"`
	ClientID     string          `json:"client_msg_id,omitempty"`
	Team         string          `json:"team,omitempty"`
	ThreadTS     string          `json:"thread_ts,omitempty"`
	ParentUser   string          `json:"parent_user_id,omitempty"`
	ReplyCount   int             `json:"reply_count,omitempty"`
	ReplyUsers   []string        `json:"reply_users,omitempty"`
	LatestReply  string          `json:"latest_reply,omitempty"`
	Edited       *Edited         `json:"edited,omitempty"`
	Files        []File          `json:"files,omitempty"`
	Upload       *bool           `json:"upload,omitempty"`
	Reactions    []Reaction      `json:"reactions,omitempty"`
	Blocks       json.RawMessage `json:"blocks,omitempty"`
	Attachments  json.RawMessage `json:"attachments,omitempty"`
	Metadata     *Metadata       `json:"metadata,omitempty"`
	BotProfile   fields          `json:"bot_profile,omitempty"`
	Inviter      string          `json:"inviter,omitempty"`
	Topic        string          `json:"topic,omitempty"`
	Name         string          `json:"name,omitempty"` // of a channel that was renamed
	OldName      string          `json:"old_name,omitempty"`
	Root         *Message        `json:"root,omitempty"` // of a thread_broadcast
	IsEphemeral  bool            `json:"is_ephemeral,omitempty"`
	Streaming    string          `json:"streaming_state,omitempty"` // in_progress or completed
	isBroadcast  bool
	isTombstoned bool
	isLocked     bool // no replies are taken
	stream       *Stream
}

// Edited is the last edit of a message.
type Edited struct {
	User string `json:"user"`
	TS   string `json:"ts"`
}

// Reaction is an emoji under a message.
type Reaction struct {
	Name  string   `json:"name"`
	Users []string `json:"users"`
	Count int      `json:"count"`
}

// Metadata is the metadata of an app's message.
type Metadata struct {
	Type    string          `json:"event_type"`
	Payload json.RawMessage `json:"event_payload"`
}

// File is a file of a message.
type File struct {
	ID                 string `json:"id"`
	Created            int64  `json:"created"`
	Timestamp          int64  `json:"timestamp"`
	Name               string `json:"name"`
	Title              string `json:"title"`
	Mimetype           string `json:"mimetype"`
	Filetype           string `json:"filetype"`
	PrettyType         string `json:"pretty_type"`
	User               string `json:"user"`
	Team               string `json:"user_team"`
	Mode               string `json:"mode"`
	Size               int64  `json:"size"`
	IsExternal         bool   `json:"is_external"`
	IsPublic           bool   `json:"is_public"`
	FileAccess         string `json:"file_access,omitempty"`
	DurationMS         int64  `json:"duration_ms,omitempty"`
	Subtype            string `json:"subtype,omitempty"`
	URLPrivate         string `json:"url_private"`
	URLPrivateDownload string `json:"url_private_download"`
	Permalink          string `json:"permalink"`
}

// by notes the app that posts a message.
func (m *Message) by(app User) {
	m.BotID, m.AppID = app.BotID, app.AppID
	m.BotProfile = fields{"id": app.BotID, "app_id": app.AppID, "name": app.RealName, "deleted": false,
		"team_id": teamID}
}

// snapshot is a copy of a message, which later changes do not affect.
func (m *Message) snapshot() Message {
	c := *m
	c.Files = append([]File(nil), m.Files...)
	c.ReplyUsers = append([]string(nil), m.ReplyUsers...)
	c.Reactions = nil
	for _, r := range m.Reactions {
		r.Users = append([]string(nil), r.Users...)
		c.Reactions = append(c.Reactions, r)
	}
	return c
}

// bare is a message as in its event, without later additions.
func (m *Message) bare() Message {
	c := m.snapshot()
	c.Reactions, c.ReplyCount, c.ReplyUsers, c.LatestReply = nil, 0, nil, ""
	if c.ThreadTS == c.TS {
		c.ThreadTS = ""
	}
	return c
}
