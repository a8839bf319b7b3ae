package telegram

import "encoding/json"

// fields are those of an object without a type of its own.
type fields map[string]any

// The objects of the Bot API that the fake uses. Optional fields are omitted when they are empty;
// the others are always present.

// User is a user or a bot.
type User struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	Username  string `json:"username,omitempty"`
	Language  string `json:"language_code,omitempty"`
}

// The kinds of chats.
const (
	Private    = "private"
	Group      = "group"
	Supergroup = "supergroup"
)

// Chat is a chat. A private chat has its user's id; groups have negative ids.
type Chat struct {
	ID        int64  `json:"id"`
	Type      string `json:"type"`
	Title     string `json:"title,omitempty"`
	Username  string `json:"username,omitempty"`
	FirstName string `json:"first_name,omitempty"`
	IsForum   bool   `json:"is_forum,omitempty"`
	IsDirect  bool   `json:"is_direct_messages,omitempty"`
}

// Entity is the formatting of a part of a text; Offset and Length are in UTF-16 units.
type Entity struct {
	Type     string `json:"type"`
	Offset   int    `json:"offset"`
	Length   int    `json:"length"`
	URL      string `json:"url,omitempty"`
	User     *User  `json:"user,omitempty"`
	Language string `json:"language,omitempty"`
	Emoji    string `json:"custom_emoji_id,omitempty"`
}

// Message is a message, or a service message, of a chat.
type Message struct {
	ID      int     `json:"message_id"`
	Thread  int     `json:"message_thread_id,omitempty"`
	From    *User   `json:"from,omitempty"`
	Chat    Chat    `json:"chat"`
	Date    int64   `json:"date"`
	Origin  *Origin `json:"forward_origin,omitempty"`
	IsTopic bool    `json:"is_topic_message,omitempty"`

	DirectTopic *DirectTopic `json:"direct_messages_topic,omitempty"`
	ReplyTo     *Message     `json:"reply_to_message,omitempty"`
	External    *External    `json:"external_reply,omitempty"`
	Quote       *Quote       `json:"quote,omitempty"`
	EditDate    int64        `json:"edit_date,omitempty"`
	MediaGroup  string       `json:"media_group_id,omitempty"`

	Text            string   `json:"text,omitempty"`
	Entities        []Entity `json:"entities,omitempty"`
	Caption         string   `json:"caption,omitempty"`
	CaptionEntities []Entity `json:"caption_entities,omitempty"`

	Audio     *Media    `json:"audio,omitempty"`
	Document  *Media    `json:"document,omitempty"`
	Photo     []Media   `json:"photo,omitempty"`
	Sticker   *Sticker  `json:"sticker,omitempty"`
	Video     *Media    `json:"video,omitempty"`
	VideoNote *Media    `json:"video_note,omitempty"`
	Voice     *Media    `json:"voice,omitempty"`
	Contact   *Contact  `json:"contact,omitempty"`
	Location  *Location `json:"location,omitempty"`
	Poll      *Poll     `json:"poll,omitempty"`

	Rich json.RawMessage `json:"rich_message,omitempty"`

	Markup json.RawMessage `json:"reply_markup,omitempty"`

	NewMembers   []User        `json:"new_chat_members,omitempty"`
	LeftMember   *User         `json:"left_chat_member,omitempty"`
	MigrateTo    int64         `json:"migrate_to_chat_id,omitempty"`
	MigrateFrom  int64         `json:"migrate_from_chat_id,omitempty"`
	TopicCreated *TopicCreated `json:"forum_topic_created,omitempty"`
}

// DirectTopic is the topic of a subscriber in the direct messages of a channel.
type DirectTopic struct {
	ID   int64 `json:"topic_id"`
	User User  `json:"user"`
}

// External is the message of another topic or chat that a message answers, without its text. The id and the
// chat are only set for supergroups.
type External struct {
	Origin    Origin `json:"origin"`
	Chat      *Chat  `json:"chat,omitempty"`
	MessageID int    `json:"message_id,omitempty"`

	Photo    []Media `json:"photo,omitempty"`
	Document *Media  `json:"document,omitempty"`
	Voice    *Media  `json:"voice,omitempty"`
}

// Quote is the beginning of a text that is answered. Position is in UTF-16 units.
type Quote struct {
	Text     string `json:"text"`
	Position int    `json:"position"`
}

// Origin is the origin of a forwarded message: Type is "user" with SenderUser.
type Origin struct {
	Type       string `json:"type"`
	Date       int64  `json:"date"`
	SenderUser *User  `json:"sender_user,omitempty"`
}

// Media is a file of any kind but a sticker; Size is in bytes, Duration in seconds.
type Media struct {
	FileID   string `json:"file_id"`
	UniqueID string `json:"file_unique_id"`
	Width    int    `json:"width,omitempty"`
	Height   int    `json:"height,omitempty"`
	Duration int    `json:"duration,omitempty"`
	Name     string `json:"file_name,omitempty"`
	MIME     string `json:"mime_type,omitempty"`
	Size     int64  `json:"file_size,omitempty"`
}

// Sticker is a sticker.
type Sticker struct {
	FileID     string `json:"file_id"`
	UniqueID   string `json:"file_unique_id"`
	Type       string `json:"type"`
	Width      int    `json:"width"`
	Height     int    `json:"height"`
	IsAnimated bool   `json:"is_animated"`
	IsVideo    bool   `json:"is_video"`
	Emoji      string `json:"emoji,omitempty"`
	Size       int64  `json:"file_size,omitempty"`
}

// Contact is a phone number.
type Contact struct {
	Phone     string `json:"phone_number"`
	FirstName string `json:"first_name"`
}

// Location is a point on the map, in degrees.
type Location struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

// Poll is a poll with its counts.
type Poll struct {
	ID          string       `json:"id"`
	Question    string       `json:"question"`
	Options     []PollOption `json:"options"`
	Total       int          `json:"total_voter_count"`
	IsClosed    bool         `json:"is_closed"`
	IsAnonymous bool         `json:"is_anonymous"`
	Type        string       `json:"type"`
	Multiple    bool         `json:"allows_multiple_answers"`
	OpenPeriod  int          `json:"open_period,omitempty"`
	CloseDate   int64        `json:"close_date,omitempty"`
}

// PollOption is an option and its votes.
type PollOption struct {
	Text   string `json:"text"`
	Voters int    `json:"voter_count"`
}

// TopicCreated is the service message that begins a topic.
type TopicCreated struct {
	Name  string `json:"name"`
	Color int    `json:"icon_color"`
}

// ForumTopic is the result of createForumTopic.
type ForumTopic struct {
	Thread int    `json:"message_thread_id"`
	Name   string `json:"name"`
	Color  int    `json:"icon_color"`
}

// Reaction is an emoji under a message.
type Reaction struct {
	Type  string `json:"type"`
	Emoji string `json:"emoji,omitempty"`
}

// The statuses of a user in a chat.
const (
	Creator       = "creator"
	Administrator = "administrator"
	Member        = "member"
	Left          = "left"
	Kicked        = "kicked"
)

// Command is one entry of the bot's menu.
type Command struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}
