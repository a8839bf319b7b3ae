package discordapi

import (
	"encoding/json"
	"fmt"
)

// Update is one event of the gateway. At most one of the pointers is set; none of them in an event
// that is not read.
type Update struct {
	Type     string
	Session  string // of the gateway, which numbers its events
	Sequence int64
	Place    Place // of events in a channel

	Ready         *Ready
	Guild         *Guild // sent at the start of a session, or when the bot is added
	GuildUpdate   *Guild // without channels and threads
	GuildGone     *Guild
	RoleChange    *RoleChange
	RoleGone      *RoleGone
	Channel       *Channel // made or changed; threads too
	ChannelGone   *Channel
	ThreadList    *ThreadList
	Message       *Message
	EditedMessage *Message
	Deleted       *Deleted
	Reaction      *Reaction
	ReactionGone  *Reaction
	Vote          *PollVote
	VoteGone      *PollVote
	MemberJoined  *MemberChange
	MemberLeft    *MemberChange
	MemberChanged *MemberChange // of the bot, and with the intent for members of others
	Interaction   *Interaction
}

// ParseUpdate decodes an event: its type, its session and sequence number, and its data. Missing data, or
// data of another type, is an error.
func ParseUpdate(kind, session string, sequence int64, data []byte) (*Update, error) {
	u := &Update{Type: kind, Session: session, Sequence: sequence}
	into := u.field()
	if into == nil {
		return u, nil
	}
	if string(data) == "null" || len(data) == 0 {
		return nil, fmt.Errorf("%s without data", kind)
	}
	err := json.Unmarshal(data, into)
	if err == nil {
		err = json.Unmarshal(data, &u.Place)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return u, nil
}

// field is the field for the data of an event of this type, nil if it is not read.
func (u *Update) field() any {
	switch u.Type {
	case "READY":
		return &u.Ready
	case "GUILD_CREATE":
		return &u.Guild
	case "GUILD_UPDATE":
		return &u.GuildUpdate
	case "GUILD_DELETE":
		return &u.GuildGone
	case "GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE":
		return &u.RoleChange
	case "GUILD_ROLE_DELETE":
		return &u.RoleGone
	case "CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE":
		return &u.Channel
	case "CHANNEL_DELETE", "THREAD_DELETE":
		return &u.ChannelGone
	case "THREAD_LIST_SYNC":
		return &u.ThreadList
	case "MESSAGE_CREATE":
		return &u.Message
	case "MESSAGE_UPDATE":
		return &u.EditedMessage
	case "MESSAGE_DELETE", "MESSAGE_DELETE_BULK":
		return &u.Deleted
	case "MESSAGE_REACTION_ADD":
		return &u.Reaction
	case "MESSAGE_REACTION_REMOVE":
		return &u.ReactionGone
	case "MESSAGE_POLL_VOTE_ADD":
		return &u.Vote
	case "MESSAGE_POLL_VOTE_REMOVE":
		return &u.VoteGone
	case "GUILD_MEMBER_ADD":
		return &u.MemberJoined
	case "GUILD_MEMBER_UPDATE":
		return &u.MemberChanged
	case "GUILD_MEMBER_REMOVE":
		return &u.MemberLeft
	case "INTERACTION_CREATE":
		return &u.Interaction
	}
	return nil
}

// Place is where an event happened. Private channels have no guild.
type Place struct {
	GuildID   string `json:"guild_id"`
	ChannelID string `json:"channel_id"`
}

// Made reports whether a channel or a thread was just made.
func (u *Update) Made() bool {
	return u.Channel != nil && (u.Type == "CHANNEL_CREATE" || u.Type == "THREAD_CREATE")
}

// Ready is the beginning of a session.
type Ready struct {
	SessionID string  `json:"session_id"`
	User      User    `json:"user"`
	Guilds    []Guild `json:"guilds"` // those the bot is in; each is sent by an event of its own
}

// RoleChange is a role that was made or changed.
type RoleChange struct {
	GuildID string `json:"guild_id"`
	Role    Role   `json:"role"`
}

// RoleGone is a deleted role.
type RoleGone struct {
	GuildID string `json:"guild_id"`
	RoleID  string `json:"role_id"`
}

// ThreadList is the active threads of channels that have become visible to the bot.
type ThreadList struct {
	GuildID string    `json:"guild_id"`
	Threads []Channel `json:"threads"`
}

// Deleted is one deleted message, or several. Discord does not say who deleted them.
type Deleted struct {
	ID        string   `json:"id"`
	IDs       []string `json:"ids"`
	ChannelID string   `json:"channel_id"`
	GuildID   string   `json:"guild_id"`
}

// Reaction is a reaction that was added or, without Member, removed.
type Reaction struct {
	UserID    string  `json:"user_id"`
	ChannelID string  `json:"channel_id"`
	MessageID string  `json:"message_id"`
	GuildID   string  `json:"guild_id"`
	Member    *Member `json:"member"`
	Emoji     Emoji   `json:"emoji"`
}

// PollVote is a vote for one answer of a poll that was added or removed.
type PollVote struct {
	UserID    string `json:"user_id"`
	ChannelID string `json:"channel_id"`
	MessageID string `json:"message_id"`
	GuildID   string `json:"guild_id"`
	AnswerID  int    `json:"answer_id"` // from 1
}

// Emoji is a unicode emoji, or one of a guild, which has an id. The name of a deleted one is "".
type Emoji struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// MemberChange is a user who joined or left a guild. Only joins have a time.
type MemberChange struct {
	Member
	GuildID string `json:"guild_id"`
}

// InteractionCommand is the type of interaction of a slash command.
const InteractionCommand = 2

// InteractionPress is the press of a button.
const InteractionPress = 3

// Interaction is a use of a command by a user, or the press of a button.
type Interaction struct {
	ID        string  `json:"id"`
	Type      int     `json:"type"`
	Token     string  `json:"token"` // for the answer
	ChannelID string  `json:"channel_id"`
	GuildID   string  `json:"guild_id"`
	Member    *Member `json:"member"` // in a guild
	User      *User   `json:"user"`   // in private
	Message   *struct {
		ID string `json:"id"`
	} `json:"message"` // with the button
	Data struct {
		CustomID string  `json:"custom_id"` // of the button
		Name     string  `json:"name"`
		Options  []Given `json:"options"`
	} `json:"data"`
}

// Given is an argument of a command that its user gave, or a command below it with arguments of its own.
type Given struct {
	Name    string          `json:"name"`
	Value   json.RawMessage `json:"value"` // a text, a number or a truth value
	Options []Given         `json:"options"`
}

// Text is the argument if it is a text, "" otherwise.
func (g *Given) Text() (text string) {
	_ = json.Unmarshal(g.Value, &text) // another type counts as none
	return text
}

// Option is the text argument of a command, "" for none.
func (i *Interaction) Option(name string) (text string) {
	for _, o := range i.Data.Options {
		if o.Name == name {
			text = o.Text()
		}
	}
	return text
}
