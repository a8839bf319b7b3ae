package telegram

import "context"

// method is one method of the Bot API. do runs under the server's lock; poll, which only getUpdates
// has, does not.
type method struct {
	name  string
	sends bool // it sends messages, and counts for the rate limits
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

		"editmessagetext":    {name: "editMessageText", do: s.editMessageText},
		"editmessagecaption": {name: "editMessageCaption", do: s.editMessageCaption},
		"deletemessage":      {name: "deleteMessage", do: s.deleteMessage},
		"sendchataction":     {name: "sendChatAction", do: s.sendChatAction},
		"setmessagereaction": {name: "setMessageReaction", do: s.setMessageReaction},

		"getfile":          {name: "getFile", do: s.getFile},
		"getchat":          {name: "getChat", do: s.getChat},
		"getchatmember":    {name: "getChatMember", do: s.getChatMember},
		"leavechat":        {name: "leaveChat", do: s.leaveChat},
		"createforumtopic": {name: "createForumTopic", do: s.createForumTopic},
	}
}

func (s *Server) getMe(params) (any, error) {
	return botUser{User: s.me, JoinGroups: true, ReadAll: !s.privacy}, nil
}

func (s *Server) getMyCommands(params) (any, error) {
	if s.commands == nil {
		return []Command{}, nil
	}
	return s.commands, nil
}

// setMyCommands supports only the default scope.
func (s *Server) setMyCommands(p params) (any, error) {
	var commands []Command
	if found, err := p.json("commands", &commands); err != nil || !found {
		return nil, badRequest("can't parse commands JSON object")
	}
	for _, c := range commands {
		switch {
		case !commandForm.MatchString(c.Command):
			return nil, badRequest("BOT_COMMAND_INVALID")
		case c.Description == "" || units(c.Description) > 256:
			return nil, badRequest("BOT_COMMAND_DESCRIPTION_INVALID")
		}
	}
	if len(commands) > 100 {
		return nil, badRequest("BOT_COMMANDS_TOO_MUCH")
	}
	s.commands = commands
	return true, nil
}

func (s *Server) getChat(p params) (any, error) {
	r, err := s.readable(p)
	if err != nil {
		return nil, err
	}
	return chatFullInfo{Chat: r.chat, MaxReactions: 11}, nil
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
