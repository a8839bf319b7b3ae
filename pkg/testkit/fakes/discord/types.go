package discord

import (
	"cmp"
	"encoding/json"
	"time"
)

// The objects of Discord's API that the fake uses. Ids are snowflakes in decimal. Optional fields
// are omitted when they are empty; nullable ones are null.

// Nullable is a string that is null in JSON when it is empty.
type Nullable string

// MarshalJSON implements json.Marshaler.
func (n Nullable) MarshalJSON() ([]byte, error) {
	if n == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(n))
}

// User is a user or a bot.
type User struct {
	ID            string   `json:"id"`
	Username      string   `json:"username"`
	Discriminator string   `json:"discriminator"` // always "0"
	GlobalName    Nullable `json:"global_name"`
	Bot           bool     `json:"bot,omitempty"`
}

// Mention is the text that mentions a user.
func (u User) Mention() string { return "<@" + u.ID + ">" }

// Name is the name that clients show.
func (u User) Name() string { return cmp.Or(string(u.GlobalName), u.Username) }

// Member is a user in a guild. User is omitted in events of messages, which have an Author.
type Member struct {
	User     *User     `json:"user,omitempty"`
	Nick     Nullable  `json:"nick"`
	Roles    []string  `json:"roles"`
	JoinedAt time.Time `json:"joined_at"`
}

// Mentioned is a mentioned user; Member is omitted in private channels.
type Mentioned struct {
	User
	Member *Member `json:"member,omitempty"`
}

// Role is a role of a guild. A managed one belongs to the bot in Tags.
type Role struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Position    int       `json:"position"`
	Permissions string    `json:"permissions"` // bits in decimal
	Managed     bool      `json:"managed"`
	Mentionable bool      `json:"mentionable"`
	Flags       int       `json:"flags"`
	Tags        *RoleTags `json:"tags,omitempty"`
}

// RoleTags identify the owner of a managed role.
type RoleTags struct {
	BotID string `json:"bot_id,omitempty"`
}

// Mention is the text that mentions a role.
func (r Role) Mention() string { return "<@&" + r.ID + ">" }

// Emoji is a unicode emoji, which has no ID.
type Emoji struct {
	ID   Nullable `json:"id"`
	Name string   `json:"name"`
}

// The kinds of channels.
const (
	Text          = 0
	Private       = 1 // with one user
	PublicThread  = 11
	PrivateThread = 12
	Forum         = 15
)

// Channel is a channel of a guild, a private one, or a thread.
type Channel struct {
	ID            string          `json:"id"`
	Type          int             `json:"type"`
	GuildID       string          `json:"guild_id,omitempty"`
	Name          string          `json:"name,omitempty"`
	Topic         Nullable        `json:"topic,omitempty"`
	Position      int             `json:"position"`
	ParentID      Nullable        `json:"parent_id"`
	LastMessageID Nullable        `json:"last_message_id"`
	Overwrites    []Overwrite     `json:"permission_overwrites,omitempty"`
	Recipients    []User          `json:"recipients,omitempty"` // of a private channel
	OwnerID       string          `json:"owner_id,omitempty"`   // of a thread, like all below
	Metadata      *ThreadMetadata `json:"thread_metadata,omitempty"`
	MessageCount  *int            `json:"message_count,omitempty"`
	MemberCount   *int            `json:"member_count,omitempty"`
	TotalSent     *int            `json:"total_message_sent,omitempty"`
	Member        *ThreadMember   `json:"member,omitempty"`        // the bot's own
	NewlyCreated  bool            `json:"newly_created,omitempty"` // in THREAD_CREATE
	Message       *Message        `json:"message,omitempty"`       // in the answer to the creation of a forum post
	Flags         int             `json:"flags"`
}

// Overwrite changes permissions in one channel; Type is 0 for a role, 1 for a member.
type Overwrite struct {
	ID    string `json:"id"`
	Type  int    `json:"type"`
	Allow string `json:"allow"`
	Deny  string `json:"deny"`
}

// ThreadMetadata is the state of a thread.
type ThreadMetadata struct {
	Archived            bool      `json:"archived"`
	AutoArchiveDuration int       `json:"auto_archive_duration"` // minutes
	ArchiveTimestamp    time.Time `json:"archive_timestamp"`
	Locked              bool      `json:"locked"`
	CreateTimestamp     time.Time `json:"create_timestamp"`
}

// ThreadMember is a user in a thread.
type ThreadMember struct {
	ID            string    `json:"id"` // the thread's
	UserID        string    `json:"user_id"`
	JoinTimestamp time.Time `json:"join_timestamp"`
	Flags         int       `json:"flags"`
}

// The kinds of messages.
const (
	Default           = 0
	UserJoin          = 7
	ThreadCreated     = 18
	ReplyMessage      = 19
	ChatInputCommand  = 20
	ThreadStarter     = 21
	PollResultMessage = 46
)

// Flags of messages.
const (
	SuppressEmbeds = 1 << 2
	HasThread      = 1 << 5
	Ephemeral      = 1 << 6
	IsVoiceMessage = 1 << 13
	HasSnapshot    = 1 << 14
)

// Message is a message, or a system message, of a channel. GuildID, ChannelType and Member are only in events.
type Message struct {
	ID              string              `json:"id"`
	ChannelID       string              `json:"channel_id"`
	GuildID         string              `json:"guild_id,omitempty"`
	ChannelType     *int                `json:"channel_type,omitempty"`
	Author          User                `json:"author"`
	Member          *Member             `json:"member,omitempty"`
	Content         string              `json:"content"`
	Timestamp       time.Time           `json:"timestamp"`
	EditedTimestamp *time.Time          `json:"edited_timestamp"`
	MentionEveryone bool                `json:"mention_everyone"`
	Mentions        []Mentioned         `json:"mentions"`
	MentionRoles    []string            `json:"mention_roles"`
	Attachments     []Attachment        `json:"attachments"`
	Embeds          []Embed             `json:"embeds"`
	Reactions       []Reaction          `json:"reactions,omitempty"`
	Nonce           json.RawMessage     `json:"nonce,omitempty"` // a string or a number
	Pinned          bool                `json:"pinned"`
	WebhookID       string              `json:"webhook_id,omitempty"`
	ApplicationID   string              `json:"application_id,omitempty"`
	Type            int                 `json:"type"`
	Reference       *Reference          `json:"message_reference,omitempty"`
	Snapshots       []Snapshot          `json:"message_snapshots,omitempty"`
	Referenced      json.RawMessage     `json:"referenced_message,omitempty"` // null for a deleted one
	Flags           int                 `json:"flags"`
	Components      []json.RawMessage   `json:"components"`
	Stickers        []Sticker           `json:"sticker_items,omitempty"`
	Thread          *Channel            `json:"thread,omitempty"`
	Poll            *Poll               `json:"poll,omitempty"`
	Interaction     *InteractionSummary `json:"interaction_metadata,omitempty"`
}

// Reference is the message to which one replies, or with Type 1 the forwarded one.
type Reference struct {
	Type      int    `json:"type"`
	MessageID string `json:"message_id,omitempty"`
	ChannelID string `json:"channel_id,omitempty"`
	GuildID   string `json:"guild_id,omitempty"`
}

// Snapshot is a forwarded message, without author and channel.
type Snapshot struct {
	Message SnapshotMessage `json:"message"`
}

// SnapshotMessage is the content of a forwarded message.
type SnapshotMessage struct {
	Type            int               `json:"type"`
	Content         string            `json:"content"`
	Embeds          []Embed           `json:"embeds"`
	Attachments     []Attachment      `json:"attachments"`
	Timestamp       time.Time         `json:"timestamp"`
	EditedTimestamp *time.Time        `json:"edited_timestamp"`
	Flags           int               `json:"flags"`
	Stickers        []Sticker         `json:"sticker_items,omitempty"`
	Mentions        []Mentioned       `json:"mentions"`
	MentionRoles    []string          `json:"mention_roles"`
	Components      []json.RawMessage `json:"components"`
}

// Attachment is a file of a message.
type Attachment struct {
	ID          string  `json:"id"`
	Filename    string  `json:"filename"`
	ContentType string  `json:"content_type,omitempty"`
	Size        int64   `json:"size"`
	URL         string  `json:"url"`
	ProxyURL    string  `json:"proxy_url"`
	Width       int     `json:"width,omitempty"`
	Height      int     `json:"height,omitempty"`
	Seconds     float64 `json:"duration_secs,omitempty"` // of a voice message, like Waveform
	Waveform    string  `json:"waveform,omitempty"`
}

// Embed is a preview of a link, or rich content of a bot.
type Embed struct {
	Type        string       `json:"type,omitempty"`
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	Fields      []EmbedField `json:"fields,omitempty"`
}

// EmbedField is a section of an embed.
type EmbedField struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Reaction is an emoji under a message, with its count.
type Reaction struct {
	Emoji Emoji `json:"emoji"`
	Count int   `json:"count"`
	Me    bool  `json:"me"`
}

// Sticker is a sticker of a message; Format 1 is PNG.
type Sticker struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Format int    `json:"format_type"`
}
