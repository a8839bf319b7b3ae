// Package telegramapi holds the objects of Telegram's Bot API that teled reads, as its documentation
// spells them. Fields that are not read are left out, so that an update with more fields, or of
// a newer kind, still decodes. Dates are unix seconds. A missing optional field is a zero value or a nil
// pointer.
package telegramapi

// Update is one event. At most one of the pointers is set, none for a kind that is not read.
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
	FirstName string `json:"first_name"` // empty if the account is deleted
	LastName  string `json:"last_name"`
	Username  string `json:"username"` // without the "@"

	// CanReadAllGroupMessages means that privacy mode is off, CanJoinGroups that the bot may be added
	// to groups. Only getMe sets them.
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

// Chat is a chat. A private chat has its user's id and names, the others a negative id and a title.
type Chat struct {
	ID        int64    `json:"id"`
	Type      ChatType `json:"type"`
	Title     string   `json:"title"`
	Username  string   `json:"username"`
	FirstName string   `json:"first_name"`
	LastName  string   `json:"last_name"`
	IsForum   bool     `json:"is_forum"`
	// IsDirect marks the direct messages of a channel: a supergroup whose messages each belong to a topic, which only
	// its subscriber and the channel's administrators see.
	IsDirect bool `json:"is_direct_messages"`
}

// MessageReactionUpdated is a change of the reactions of one user, or of one chat acting as itself, to a
// message. Both lists are complete. The topic of the message is not known.
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

// ReactionType is one reaction: Emoji is set for an emoji, CustomEmojiID for a custom_emoji.
type ReactionType struct {
	Type          string `json:"type"`
	Emoji         string `json:"emoji"`
	CustomEmojiID string `json:"custom_emoji_id"`
}

// ChatMemberUpdated is a change of a user's status in a chat, made by From.
type ChatMemberUpdated struct {
	Chat Chat       `json:"chat"`
	From User       `json:"from"`
	Date int64      `json:"date"`
	Old  ChatMember `json:"old_chat_member"`
	New  ChatMember `json:"new_chat_member"`
}

// Statuses of users in chats. A restricted user may be in the chat or not.
const (
	StatusCreator       = "creator"
	StatusAdministrator = "administrator"
	StatusMember        = "member"
	StatusRestricted    = "restricted"
	StatusLeft          = "left"
	StatusKicked        = "kicked"
)

// ChatMember is a user's status in a chat.
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

// Poll is a poll with its counts so far. As an update it is a poll that the bot sent.
type Poll struct {
	ID       string       `json:"id"`
	Question string       `json:"question"`
	Options  []PollOption `json:"options"`
	IsClosed bool         `json:"is_closed"`
	Total    int          `json:"total_voter_count"`

	Description string     `json:"description"`
	Media       *PollMedia `json:"media"`       // of the description
	Explanation string     `json:"explanation"` // of a quiz's right answer, if the bot may know it
}

// PollOption is an option and its number of votes.
type PollOption struct {
	ID         string     `json:"persistent_id"`
	Text       string     `json:"text"`
	VoterCount int        `json:"voter_count"`
	Media      *PollMedia `json:"media"`
}

// PollMedia is the file, the place or the link of a poll or an option.
type PollMedia struct {
	Things
	Link *struct {
		URL string `json:"url"`
	} `json:"link"`
}

// PollAnswer is the vote of a user, or of a chat acting as itself, in a poll of the bot that is not
// anonymous. Without options the vote was withdrawn.
type PollAnswer struct {
	PollID    string `json:"poll_id"`
	User      *User  `json:"user"`
	VoterChat *Chat  `json:"voter_chat"`
	OptionIDs []int  `json:"option_ids"`
}

// CallbackQuery is the press of a button under a message of the bot. Of a message that is too old the content is
// missing.
type CallbackQuery struct {
	ID      string   `json:"id"`
	From    User     `json:"from"`
	Message *Message `json:"message"`
	Data    string   `json:"data"`
}

// Keyboard are the buttons under a message.
type Keyboard struct {
	Rows [][]Button `json:"inline_keyboard"`
}

// Button is a button whose press is a CallbackQuery with its data, of 1 to 64 bytes.
type Button struct {
	Text string `json:"text"`
	Data string `json:"callback_data"`
}
