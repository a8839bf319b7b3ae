// Package discordapi holds the objects of Discord's API that discd reads, as its documentation spells
// them, and calls its REST part. Fields that are not read are left out, so that an event with
// more fields, or with objects of newer kinds, still decodes; the library's own structs refuse a whole
// message for one unknown component. Ids are snowflakes in decimal: the upper 42 bits are milliseconds
// since 2015, so that newer objects have greater ids.
package discordapi

import (
	"strconv"
	"time"
)

// User is a person or a bot.
type User struct {
	ID         string  `json:"id"`
	Username   string  `json:"username"`
	GlobalName string  `json:"global_name"` // the display name, "" for none
	Bot        bool    `json:"bot"`
	Member     *Member `json:"member"` // of a user mentioned in a guild
}

// Member is a user in a guild. Events that contain the user beside it leave User out.
type Member struct {
	User     *User     `json:"user"`
	Nick     string    `json:"nick"`
	Roles    []string  `json:"roles"` // but for everyone's
	JoinedAt time.Time `json:"joined_at"`
}

// The types of messages of users and bots. All others are notices of the channel.
const (
	MessageDefault     = 0
	MessageReply       = 19
	MessageSlash       = 20 // a bot's answer to a command
	MessageStarter     = 21 // at the top of a thread: the message that it was made from
	MessageContextMenu = 23 // and to one of a menu
	MessagePollResult  = 46 // refers to a poll that has ended
)

// Message is a message of a channel.
type Message struct {
	ID              string       `json:"id"`
	ChannelID       string       `json:"channel_id"`
	GuildID         string       `json:"guild_id"` // only in events, and there only of guilds
	Type            int          `json:"type"`
	Flags           int          `json:"flags"`
	Content         string       `json:"content"`
	EditedTimestamp *time.Time   `json:"edited_timestamp"`
	Author          *User        `json:"author"` // made up for messages of webhooks
	Member          *Member      `json:"member"`
	WebhookID       string       `json:"webhook_id"`
	Mentions        []User       `json:"mentions"` // including the author of the message it replies to
	MentionRoles    []string     `json:"mention_roles"`
	MentionChannels []Channel    `json:"mention_channels"` // some of those in a post of another server
	Reference       *Reference   `json:"message_reference"`
	Referenced      *Message     `json:"referenced_message"` // it replies to this one, nil if that is deleted
	Snapshots       []Snapshot   `json:"message_snapshots"`  // of forwarded messages
	Attachments     []Attachment `json:"attachments"`
	Embeds          []Embed      `json:"embeds"`
	Components      Components   `json:"components"`
	Stickers        []Titled     `json:"sticker_items"`
	Poll            *Poll        `json:"poll"`
	Activity        *struct{}    `json:"activity"` // an invitation to a game, or to listen along
	Application     *Titled      `json:"application"`
	Theme           *struct{}    `json:"shared_client_theme"`

	Pasted string `json:"-"` // the text that came as a file, as far as discd has read it
}

// FlagLoading is the flag of a bot's answer to a command that it has yet to write.
const FlagLoading = 1 << 7

// ReferenceReply is the type of a reply's reference.
const ReferenceReply = 0

// Reference is the message that one replies to, or that it forwards.
type Reference struct {
	Type      int    `json:"type"`
	MessageID string `json:"message_id"`
}

// Snapshot is a forwarded message. Discord does not reveal its author.
type Snapshot struct {
	Message *Message `json:"message"`
}

// Titled is an object of which only the name is read.
type Titled struct {
	Name string `json:"name"`
}

// Poll is a poll, in messages and in calls that make one.
type Poll struct {
	Question PollMedia    `json:"question"`
	Answers  []PollAnswer `json:"answers"`
	Multiple bool         `json:"allow_multiselect"`
	Duration int64        `json:"duration,omitempty"` // hours, only in calls
	Results  *PollResults `json:"results,omitempty"`  // only in messages
}

// PollResults are the votes for those answers that have any.
type PollResults struct {
	IsFinalized bool        `json:"is_finalized"` // the poll is closed and counted
	Counts      []PollCount `json:"answer_counts"`
}

// PollCount is the number of votes for an answer. Ids of answers begin at 1.
type PollCount struct {
	ID    int `json:"id"`
	Count int `json:"count"`
}

// PollAnswer is an option of a poll.
type PollAnswer struct {
	Media PollMedia `json:"poll_media"`
}

// PollMedia is the text of a question or an answer.
type PollMedia struct {
	Text  string `json:"text"`
	Emoji *Emoji `json:"emoji,omitempty"`
}

// The types of channels that are distinguished.
const (
	ChannelText               = 0
	ChannelDM                 = 1
	ChannelGroupDM            = 3
	ChannelCategory           = 4
	ChannelAnnouncementThread = 10
	ChannelPublicThread       = 11
	ChannelPrivateThread      = 12
	ChannelForum              = 15
	ChannelMedia              = 16 // a forum of pictures
)

// Channel is a channel of a guild, a private chat, or a thread, whose parent is its channel. The parent of
// other channels may be a category.
type Channel struct {
	ID            string      `json:"id"`
	GuildID       string      `json:"guild_id"`
	Type          int         `json:"type"`
	Name          string      `json:"name"`
	Position      int         `json:"position"`
	ParentID      string      `json:"parent_id"`
	OwnerID       string      `json:"owner_id"` // the user who began a thread
	LastMessageID string      `json:"last_message_id"`
	NewlyCreated  bool        `json:"newly_created"` // of a thread in the event about it
	Flags         int64       `json:"flags"`
	Overwrites    []Overwrite `json:"permission_overwrites"`
	Metadata      struct {
		Archived   bool      `json:"archived"`
		ArchivedAt time.Time `json:"archive_timestamp"` // when Archived changed last
	} `json:"thread_metadata"` // of a thread
}

// FlagObfuscated is the flag of a channel that the bot may not see, and whose name Discord therefore hides.
const FlagObfuscated = 1 << 17

// ArchivedAt is when a thread was archived, or taken out of the archive.
func (c *Channel) ArchivedAt() time.Time { return c.Metadata.ArchivedAt }

// IsForum reports whether the channel contains only threads.
func (c *Channel) IsForum() bool { return c.Type == ChannelForum || c.Type == ChannelMedia }

// IsThread reports whether the channel is a thread.
func (c *Channel) IsThread() bool {
	switch c.Type {
	case ChannelAnnouncementThread, ChannelPublicThread, ChannelPrivateThread:
		return true
	}
	return false
}

// Overwrite has the permissions of a role, or a member, in one channel. For everyone its ID is that of the guild.
type Overwrite struct {
	ID    string `json:"id"`
	Allow int64  `json:"allow,string"` // bits
	Deny  int64  `json:"deny,string"`  // bits
}

// Permissions, as bits.
const (
	Administrator      = 1 << 3
	ManageGuild        = 1 << 5
	ViewChannel        = 1 << 10
	SendMessages       = 1 << 11
	ReadMessageHistory = 1 << 16
)

// Role is a role of a guild. A bot's own is managed, and Tags name the bot.
type Role struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Permissions int64  `json:"permissions,string"` // bits
	Tags        *struct {
		BotID string `json:"bot_id"`
	} `json:"tags"`
}

// Guild is a server, as Discord's users say.
type Guild struct {
	ID              string    `json:"id"`
	Name            string    `json:"name"`
	OwnerID         string    `json:"owner_id"`
	Unavailable     bool      `json:"unavailable"` // only the id is set
	JoinedAt        time.Time `json:"joined_at"`   // of the bot
	SystemChannelID string    `json:"system_channel_id"`
	Channels        []Channel `json:"channels"`
	Threads         []Channel `json:"threads"` // that are active
	Roles           []Role    `json:"roles"`
	Members         []Member  `json:"members"` // the bot, and maybe others
}

// Flags of an application: privileged intents, for many guilds and for few.
const (
	FlagMembers               = 1 << 14
	FlagMembersLimited        = 1 << 15
	FlagMessageContent        = 1 << 18
	FlagMessageContentLimited = 1 << 19
)

// Application is the application of a bot.
type Application struct {
	ID    string `json:"id"`
	Flags int    `json:"flags"`
	// CommandsURL receives commands in place of the gateway, "" for none.
	CommandsURL string `json:"interactions_endpoint_url"`
	// CodeGrant means that the link of an invitation does not add the bot.
	CodeGrant bool `json:"bot_require_code_grant"`
}

// HearsMembers reports whether the bot may receive joins and leaves.
func (a *Application) HearsMembers() bool { return a.Flags&(FlagMembers|FlagMembersLimited) != 0 }

// ReadsContent reports whether the bot may receive the content of messages.
func (a *Application) ReadsContent() bool {
	return a.Flags&(FlagMessageContent|FlagMessageContentLimited) != 0
}

// epoch is when snowflakes begin, in unix milliseconds.
const epoch = 1420070400000

// SnowflakeTime is the creation time in an id, in unix milliseconds; 0 if it is not an id.
func SnowflakeTime(id string) int64 {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return 0
	}
	return int64(n>>22) + epoch
}

// SnowflakeAt is the smallest id with a creation time, in unix milliseconds.
func SnowflakeAt(ms int64) string {
	return strconv.FormatInt(max(0, ms-epoch)<<22, 10)
}

// Before is the id just below a valid id.
func Before(id string) string {
	n, _ := strconv.ParseUint(id, 10, 64) // 0 if invalid
	return strconv.FormatUint(max(n, 1)-1, 10)
}

// IsID reports whether a text is a snowflake.
func IsID(s string) bool {
	n, err := strconv.ParseUint(s, 10, 64)
	return err == nil && n > 0
}

// CompareIDs orders ids by age, the oldest first.
func CompareIDs(a, b string) int {
	switch {
	case a == b:
		return 0
	case Younger(a, b):
		return 1
	}
	return -1
}

// Younger reports whether id a is newer than id b; "" is older than all.
func Younger(a, b string) bool {
	if len(a) != len(b) {
		return len(a) > len(b)
	}
	return a > b
}
