// Package telegramapi holds the objects of Telegram's Bot API that teled reads, as its documentation
// spells them. Fields that nobody reads are left out, so an update with more in it, or of a kind
// that came later, still decodes. Dates are unix seconds. What the documentation calls optional is
// a zero value here, or a nil pointer, where it is missing.
package telegramapi

// Update is one thing that happened. At most one of the pointers is set; none of them in an
// update of a kind that is not read.
type Update struct {
	ID                int64                   `json:"update_id"`
	Message           *Message                `json:"message"`
	EditedMessage     *Message                `json:"edited_message"`
	ChannelPost       *Message                `json:"channel_post"`
	EditedChannelPost *Message                `json:"edited_channel_post"`
	MessageReaction   *MessageReactionUpdated `json:"message_reaction"`
	CallbackQuery     *CallbackQuery          `json:"callback_query"`
	Poll              *Poll                   `json:"poll"`
	PollAnswer        *PollAnswer             `json:"poll_answer"`
	MyChatMember      *ChatMemberUpdated      `json:"my_chat_member"`
	ChatMember        *ChatMemberUpdated      `json:"chat_member"`
}

// User is a person or a bot.
type User struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"` // empty where the account is deleted
	LastName  string `json:"last_name"`
	Username  string `json:"username"` // without the "@"

	// CanReadAllGroupMessages says that privacy mode is off, CanJoinGroups that the bot may be
	// added to groups; getMe alone tells.
	CanReadAllGroupMessages bool `json:"can_read_all_group_messages"`
	CanJoinGroups           bool `json:"can_join_groups"`
}

// ChatType is a kind of chat.
type ChatType string

// The kinds of chats. A group becomes a supergroup, with another id, when it grows or gets one of
// the features that only supergroups have.
const (
	Private    ChatType = "private"
	Group      ChatType = "group"
	Supergroup ChatType = "supergroup"
	Channel    ChatType = "channel"
)

// Chat is a place where messages stand. A private chat has its user's id and names, the others a
// negative id and a title.
type Chat struct {
	ID        int64    `json:"id"`
	Type      ChatType `json:"type"`
	Title     string   `json:"title"`
	Username  string   `json:"username"`
	FirstName string   `json:"first_name"`
	LastName  string   `json:"last_name"`
	IsForum   bool     `json:"is_forum"`
}

// MessageReactionUpdated is the change of what one user, or one chat speaking as itself, thinks of
// a message. Both lists are complete. Nothing tells the topic that the message stands in.
type MessageReactionUpdated struct {
	Chat      Chat           `json:"chat"`
	MessageID int64          `json:"message_id"`
	User      *User          `json:"user"`
	ActorChat *Chat          `json:"actor_chat"`
	Date      int64          `json:"date"`
	Old       []ReactionType `json:"old_reaction"`
	New       []ReactionType `json:"new_reaction"`
}

// The kinds of reactions.
const (
	ReactionEmoji       = "emoji"
	ReactionCustomEmoji = "custom_emoji"
	ReactionPaid        = "paid"
)

// ReactionType is one reaction: Emoji is set in an emoji, CustomEmojiID in a custom_emoji.
type ReactionType struct {
	Type          string `json:"type"`
	Emoji         string `json:"emoji"`
	CustomEmojiID string `json:"custom_emoji_id"`
}

// ChatMemberUpdated is a change of a user's standing in a chat, made by From.
type ChatMemberUpdated struct {
	Chat Chat       `json:"chat"`
	From User       `json:"from"`
	Date int64      `json:"date"`
	Old  ChatMember `json:"old_chat_member"`
	New  ChatMember `json:"new_chat_member"`
}

// Standings of users in chats. A restricted user may be in the chat or not.
const (
	StatusCreator       = "creator"
	StatusAdministrator = "administrator"
	StatusMember        = "member"
	StatusRestricted    = "restricted"
	StatusLeft          = "left"
	StatusKicked        = "kicked"
)

// ChatMember is a user's standing in a chat.
type ChatMember struct {
	Status   string `json:"status"`
	User     User   `json:"user"`
	IsMember bool   `json:"is_member"` // of a restricted user
}

// In reports whether the user is in the chat.
func (m ChatMember) In() bool {
	switch m.Status {
	case StatusCreator, StatusAdministrator, StatusMember:
		return true
	case StatusRestricted:
		return m.IsMember
	}
	return false
}

// Poll is a poll with its counts so far. As an update it tells of a poll that the bot sent.
type Poll struct {
	ID       string       `json:"id"`
	Question string       `json:"question"`
	Options  []PollOption `json:"options"`
	IsClosed bool         `json:"is_closed"`
}

// PollOption is one answer to choose and how often it was chosen.
type PollOption struct {
	Text       string `json:"text"`
	VoterCount int    `json:"voter_count"`
}

// PollAnswer is what a user, or a chat speaking as itself, chose in a poll that the bot sent and
// that is not anonymous. No option: the vote was taken back.
type PollAnswer struct {
	PollID    string `json:"poll_id"`
	User      *User  `json:"user"`
	VoterChat *Chat  `json:"voter_chat"`
	OptionIDs []int  `json:"option_ids"`
}

// CallbackQuery is the press of a button under a message of the bot.
type CallbackQuery struct {
	ID      string   `json:"id"`
	From    User     `json:"from"`
	Message *Message `json:"message"`
	Data    string   `json:"data"`
}
