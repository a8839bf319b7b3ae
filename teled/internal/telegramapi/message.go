package telegramapi

// Message is a message of a chat, or a notice of the chat itself.
type Message struct {
	ID             int64          `json:"message_id"`
	ThreadID       int64          `json:"message_thread_id"` // of a topic, or of replies in a supergroup
	IsTopicMessage bool           `json:"is_topic_message"`
	DirectTopic    *DirectTopic   `json:"direct_messages_topic"` // of the direct messages of a channel
	From           *User          `json:"from"`                  // a placeholder if SenderChat is set
	SenderChat     *Chat          `json:"sender_chat"`           // channels, anonymous administrators
	Date           int64          `json:"date"`
	EditDate       int64          `json:"edit_date"`
	Chat           Chat           `json:"chat"`
	ForwardOrigin  *MessageOrigin `json:"forward_origin"`
	// IsAutomaticForward marks a channel's post as it appears in the group that discusses it.
	IsAutomaticForward bool           `json:"is_automatic_forward"`
	ReplyToMessage     *Message       `json:"reply_to_message"` // in the same chat and topic, without its own
	ExternalReply      *ExternalReply `json:"external_reply"`   // elsewhere
	Quote              *TextQuote     `json:"quote"`            // of the text of either
	ReplyToStory       *Story         `json:"reply_to_story"`
	ReplyToTask        int64          `json:"reply_to_checklist_task_id"` // of the checklist of ReplyToMessage
	ReplyToOption      string         `json:"reply_to_poll_option_id"`    // of its poll
	MediaGroupID       string         `json:"media_group_id"`             // of an album, whose items are a message each

	Text            string          `json:"text"`
	Entities        []MessageEntity `json:"entities"`
	Caption         string          `json:"caption"`
	CaptionEntities []MessageEntity `json:"caption_entities"`

	Things

	NewChatMembers     []User            `json:"new_chat_members"`
	LeftChatMember     *User             `json:"left_chat_member"`
	ForumTopicCreated  *ForumTopicNotice `json:"forum_topic_created"`
	ForumTopicEdited   *ForumTopicNotice `json:"forum_topic_edited"` // without a name: another icon
	ForumTopicClosed   *ForumTopicNotice `json:"forum_topic_closed"`
	ForumTopicReopened *ForumTopicNotice `json:"forum_topic_reopened"`
	MigrateToChatID    int64             `json:"migrate_to_chat_id"`   // in the old group
	MigrateFromChatID  int64             `json:"migrate_from_chat_id"` // in the new supergroup
	Notices
}

// DirectTopic is the conversation with one subscriber in the direct messages of a channel.
type DirectTopic struct {
	ID   int64 `json:"topic_id"`
	User *User `json:"user"` // the subscriber
}

// Things are all that a message has besides its text.
type Things struct {
	Photo     []PhotoSize `json:"photo"` // one picture in several sizes
	Animation *File       `json:"animation"`
	Document  *File       `json:"document"` // also set, to the same file, beside Animation
	Video     *File       `json:"video"`
	VideoNote *File       `json:"video_note"`
	Voice     *File       `json:"voice"`
	Audio     *File       `json:"audio"`
	LivePhoto *File       `json:"live_photo"`
	Sticker   *Sticker    `json:"sticker"`
	PaidMedia *PaidMedia  `json:"paid_media"`

	Venue       *Venue       `json:"venue"`
	Location    *Location    `json:"location"` // also set, to the same place, beside Venue
	Contact     *Contact     `json:"contact"`
	Poll        *Poll        `json:"poll"`
	Dice        *Dice        `json:"dice"`
	Game        *Titled      `json:"game"`
	Invoice     *Titled      `json:"invoice"`
	Checklist   *Checklist   `json:"checklist"`
	Story       *Story       `json:"story"`
	RichMessage *RichMessage `json:"rich_message"`
	WebAppData  *WebAppData  `json:"web_app_data"`

	Giveaway        *Giveaway `json:"giveaway"`
	GiveawayWinners *Giveaway `json:"giveaway_winners"`
	Gift            *Gift     `json:"gift"`
	UniqueGift      *Gift     `json:"unique_gift"`

	TasksAdded    *Checklist    `json:"checklist_tasks_added"`
	TasksDone     *TasksDone    `json:"checklist_tasks_done"`
	OptionAdded   *OptionChange `json:"poll_option_added"`
	OptionDeleted *OptionChange `json:"poll_option_deleted"`
	PostDeclined  *Declined     `json:"suggested_post_declined"`
	UsersShared   *UsersShared  `json:"users_shared"`
	ChatShared    *ChatShared   `json:"chat_shared"`
}

// The kinds of entities that mean more than how a text looks.
const (
	EntityMention     = "mention"      // @username
	EntityTextMention = "text_mention" // the name of a user without a username
	EntityBotCommand  = "bot_command"  // /command or /command@username
	EntityTextLink    = "text_link"    // a text with a link
	EntityDateTime    = "date_time"    // a text that stands for a time

	EntityStrikethrough = "strikethrough"
	EntityCode          = "code"
	EntityPre           = "pre" // a block of code
	EntityBlockquote    = "blockquote"
	EntityExpandable    = "expandable_blockquote"
)

// MessageEntity marks a range of a text. Offset and Length are in UTF-16 units.
type MessageEntity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
	URL    string `json:"url"`  // of a text_link
	User   *User  `json:"user"` // of a text_mention

	Language string `json:"language"`  // of pre
	UnixTime int64  `json:"unix_time"` // of date_time, seconds
}

// MessageOrigin is the origin of a forwarded message. Which fields are set depends on its type: a user, a
// hidden user, a group, a channel.
type MessageOrigin struct {
	Date           int64  `json:"date"`
	SenderUser     *User  `json:"sender_user"`
	SenderUserName string `json:"sender_user_name"`
	SenderChat     *Chat  `json:"sender_chat"`
	Chat           *Chat  `json:"chat"`
}

// ExternalReply is the message that is replied to in another topic or chat, without its text. Chat and
// MessageID are only set for supergroups and channels.
type ExternalReply struct {
	Origin    MessageOrigin `json:"origin"`
	Chat      *Chat         `json:"chat"`
	MessageID int64         `json:"message_id"`
	Things
}

// TextQuote is a part of the text of the message that is replied to: the part that the user selected, or, if
// IsManual is false, the one that Telegram took.
type TextQuote struct {
	Text     string          `json:"text"`
	Entities []MessageEntity `json:"entities"`
	IsManual bool            `json:"is_manual"`
}

// File is a file of any kind as a message describes it; kinds without a name or type leave them
// empty. FileID is the id for getFile, FileUniqueID stays the same when the file is sent again.
type File struct {
	FileID       string `json:"file_id"`
	FileUniqueID string `json:"file_unique_id"`
	FileName     string `json:"file_name"`
	MIMEType     string `json:"mime_type"`
	FileSize     int64  `json:"file_size"` // bytes, 0 if unknown
	Duration     int64  `json:"duration"`  // seconds, of sound and video
	Title        string `json:"title"`     // of music
	Performer    string `json:"performer"`
}

// PhotoSize is a picture in one of its sizes, in pixels.
type PhotoSize struct {
	File
	Width  int `json:"width"`
	Height int `json:"height"`
}

// Sticker is a picture from a set. An animated one is an archive of vectors, a video one a film of some
// seconds.
type Sticker struct {
	File
	IsAnimated bool   `json:"is_animated"`
	IsVideo    bool   `json:"is_video"`
	Emoji      string `json:"emoji"`
	SetName    string `json:"set_name"`
}

// Location is a point on the map, in degrees.
type Location struct {
	Latitude   float64 `json:"latitude"`
	Longitude  float64 `json:"longitude"`
	LivePeriod int64   `json:"live_period"` // seconds for which it is kept up to date by edits
}

// Venue is a location with a name.
type Venue struct {
	Location Location `json:"location"`
	Title    string   `json:"title"`
	Address  string   `json:"address"`
}

// Contact is a telephone number. UserID is 0 if its owner is not on Telegram.
type Contact struct {
	PhoneNumber string `json:"phone_number"`
	FirstName   string `json:"first_name"`
	LastName    string `json:"last_name"`
	UserID      int64  `json:"user_id"`
	VCard       string `json:"vcard"` // all that is known, with the above
}

// Dice is a die, or another emoji that ends at random.
type Dice struct {
	Emoji string `json:"emoji"`
	Value int    `json:"value"`
}

// Titled is a game or an invoice.
type Titled struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Text        string `json:"text"` // of a game: its scores
}

// Checklist is a list of tasks, or, without a title, the tasks that were added to one.
type Checklist struct {
	Title string `json:"title"`
	Tasks []Task `json:"tasks"`
}

// Task is a thing to do.
type Task struct {
	ID             int64  `json:"id"`
	Text           string `json:"text"`
	CompletionDate int64  `json:"completion_date"` // 0 if it is not done
}

// TasksDone are tasks that a user marked. Message, if it is sent, has their texts.
type TasksDone struct {
	Message *Message `json:"checklist_message"`
	Done    []int64  `json:"marked_as_done_task_ids"`
	NotDone []int64  `json:"marked_as_not_done_task_ids"`
}

// OptionChange is an option that a user added to a poll, or deleted there.
type OptionChange struct {
	Text string `json:"option_text"`
}

// Declined is the refusal of a post that was suggested to a channel.
type Declined struct {
	Comment string `json:"comment"`
}

// UsersShared are users whom a user has chosen for the bot, with a button of another program with its token.
type UsersShared struct {
	Users []struct {
		ID        int64  `json:"user_id"`
		FirstName string `json:"first_name"`
		LastName  string `json:"last_name"`
		Username  string `json:"username"`
	} `json:"users"`
}

// ChatShared is a chat that was chosen in that way.
type ChatShared struct {
	ID       int64  `json:"chat_id"`
	Title    string `json:"title"`
	Username string `json:"username"`
}

// PaidMedia are pictures and videos for sale. To those who have not bought them they are previews.
type PaidMedia struct {
	StarCount int `json:"star_count"`
	Media     []struct {
		Type      string      `json:"type"`
		Photo     []PhotoSize `json:"photo"`
		Video     *File       `json:"video"`
		LivePhoto *File       `json:"live_photo"`
	} `json:"paid_media"`
}

// Story is a story that was forwarded. Its content is not sent to bots.
type Story struct {
	Chat Chat `json:"chat"`
}

// WebAppData is the message of a web app that the bot had offered by a button.
type WebAppData struct {
	Data       string `json:"data"`
	ButtonText string `json:"button_text"`
}

// Giveaway is a giveaway, or its winners.
type Giveaway struct {
	WinnerCount      int    `json:"winner_count"`
	Winners          []User `json:"winners"`
	PrizeDescription string `json:"prize_description"`
	Stars            int    `json:"prize_star_count"`
	PremiumMonths    int    `json:"premium_subscription_month_count"`
}

// Gift is a gift with a text. A unique one has a name and a number.
type Gift struct {
	Text string `json:"text"`
	Gift struct {
		Name   string `json:"base_name"`
		Number int    `json:"number"`
	} `json:"gift"`
}

// ForumTopicNotice is a change of a topic. Name is the topic's, if it changed.
type ForumTopicNotice struct {
	Name string `json:"name"`
}
