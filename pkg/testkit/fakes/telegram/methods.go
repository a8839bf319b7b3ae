package telegram

import "context"

// method is one method of the Bot API. do runs under the server's lock; poll, which only getUpdates
// has, does not.
type method struct {
	name  string
	sends bool // it sends or changes messages, and counts for the rate limits
	do    func(params) (any, error)
	poll  func(context.Context, params) (any, error)
}

// methodTable has the names in lower case: the Bot API ignores case.
func (s *Server) methodTable() map[string]method {
	return map[string]method{
		"getme":          {name: "getMe", do: s.getMe},
		"getupdates":     {name: "getUpdates", poll: s.getUpdates},
		"setwebhook":     {name: "setWebhook", do: s.setWebhook},
		"deletewebhook":  {name: "deleteWebhook", do: s.deleteWebhook},
		"getwebhookinfo": {name: "getWebhookInfo", do: s.getWebhookInfo},
		"getmycommands":  {name: "getMyCommands", do: s.getMyCommands},
		"setmycommands":  {name: "setMyCommands", do: s.setMyCommands},

		"deletemycommands": {name: "deleteMyCommands", do: s.deleteMyCommands},
		"setmydescription": {name: "setMyDescription", do: s.setMyDescription},
		"getmydescription": {name: "getMyDescription", do: s.getMyDescription},

		"sendmessage":    {name: "sendMessage", sends: true, do: s.sendMessage},
		"sendphoto":      {name: "sendPhoto", sends: true, do: s.sendFile("photo")},
		"senddocument":   {name: "sendDocument", sends: true, do: s.sendFile("document")},
		"sendvideo":      {name: "sendVideo", sends: true, do: s.sendFile("video")},
		"sendaudio":      {name: "sendAudio", sends: true, do: s.sendFile("audio")},
		"sendvoice":      {name: "sendVoice", sends: true, do: s.sendFile("voice")},
		"sendanimation":  {name: "sendAnimation", sends: true, do: s.sendFile("animation")},
		"sendsticker":    {name: "sendSticker", sends: true, do: s.sendFile("sticker")},
		"sendmediagroup": {name: "sendMediaGroup", sends: true, do: s.sendMediaGroup},
		"sendpoll":       {name: "sendPoll", sends: true, do: s.sendPoll},
		"stoppoll":       {name: "stopPoll", do: s.stopPoll},
		"senddice":       {name: "sendDice", sends: true, do: s.sendDice},
		"sendlocation":   {name: "sendLocation", sends: true, do: s.sendLocation},
		"sendvenue":      {name: "sendVenue", sends: true, do: s.sendVenue},
		"sendcontact":    {name: "sendContact", sends: true, do: s.sendContact},
		"sendvideonote":  {name: "sendVideoNote", sends: true, do: s.sendFile("video_note")},
		"forwardmessage": {name: "forwardMessage", sends: true, do: s.forwardMessage},
		"copymessage":    {name: "copyMessage", sends: true, do: s.copyMessage},

		"editmessagetext":    {name: "editMessageText", sends: true, do: s.editMessageText},
		"editmessagecaption": {name: "editMessageCaption", sends: true, do: s.editMessageCaption},

		"editmessagereplymarkup": {name: "editMessageReplyMarkup", do: s.editMessageReplyMarkup},
		"answercallbackquery":    {name: "answerCallbackQuery", do: s.answerCallbackQuery},

		"deletemessage":      {name: "deleteMessage", do: s.deleteMessage},
		"deletemessages":     {name: "deleteMessages", do: s.deleteMessages},
		"sendchataction":     {name: "sendChatAction", do: s.sendChatAction},
		"setmessagereaction": {name: "setMessageReaction", do: s.setMessageReaction},

		"getfile":          {name: "getFile", do: s.getFile},
		"getchat":          {name: "getChat", do: s.getChat},
		"getchatmember":    {name: "getChatMember", do: s.getChatMember},
		"pinchatmessage":   {name: "pinChatMessage", do: s.pinChatMessage(true)},
		"unpinchatmessage": {name: "unpinChatMessage", do: s.pinChatMessage(false)},

		"getchatadministrators": {name: "getChatAdministrators", do: s.getChatAdministrators},
		"getchatmembercount":    {name: "getChatMemberCount", do: s.getChatMemberCount},
		"closeforumtopic":       {name: "closeForumTopic", do: s.closeForumTopic(true)},
		"reopenforumtopic":      {name: "reopenForumTopic", do: s.closeForumTopic(false)},
		"deleteforumtopic":      {name: "deleteForumTopic", do: s.deleteForumTopic},

		"leavechat":        {name: "leaveChat", do: s.leaveChat},
		"createforumtopic": {name: "createForumTopic", do: s.createForumTopic},
	}
}

func (s *Server) getMe(params) (any, error) {
	return botUser{User: s.me, JoinGroups: true, ReadAll: !s.privacy}, nil
}

func (s *Server) getChat(p params) (any, error) {
	r, err := s.readable(p)
	if err != nil {
		return nil, err
	}
	full := chatFullInfo{Chat: r.chat, MaxReactions: 11, NoVoices: r.voiceless}
	if pinned := r.messages[r.pinned]; pinned != nil {
		full.Pinned = quoted(pinned)
	}
	return full, nil
}

func (s *Server) getChatMember(p params) (any, error) {
	r, err := s.readable(p)
	if err != nil {
		return nil, err
	}
	user, known := s.users[p.int("user_id", 0)]
	switch {
	case p.int("user_id", 0) == 0:
		return nil, badRequest("invalid user_id specified")
	case !known:
		return nil, badRequest("user not found")
	}
	return r.member(user), nil
}

func (s *Server) leaveChat(p params) (any, error) {
	r, err := s.readable(p)
	if err != nil {
		return nil, err
	}
	if r.chat.Type == Private {
		return nil, badRequest("chat member status can't be changed in private chats")
	}
	s.setStatus(r, s.me, s.me, Left)
	return true, nil
}

func (s *Server) createForumTopic(p params) (any, error) {
	r, err := s.writable(p)
	if err != nil {
		return nil, err
	}
	switch {
	case !r.chat.IsForum:
		return nil, badRequest("the chat is not a forum")
	case !r.admin(s.me):
		return nil, badRequest("not enough rights to create a topic")
	case p.str("name") == "":
		return nil, badRequest("TOPIC_TITLE_EMPTY")
	case units(p.str("name")) > 128:
		return nil, badRequest("TOPIC_TITLE_INVALID")
	}
	m := s.openTopic(r, s.me, p.str("name"))
	return ForumTopic{Thread: m.ID, Name: m.TopicCreated.Name, Color: m.TopicCreated.Color}, nil
}
