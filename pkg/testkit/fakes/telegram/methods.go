package telegram

import (
	"context"
	"maps"
	"slices"
)

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
		"getme":                  {name: "getMe", do: s.getMe},
		"getupdates":             {name: "getUpdates", poll: s.getUpdates},
		"deletewebhook":          {name: "deleteWebhook", do: s.deleteWebhook},
		"getwebhookinfo":         {name: "getWebhookInfo", do: s.getWebhookInfo},
		"getmycommands":          {name: "getMyCommands", do: s.getMyCommands},
		"setmycommands":          {name: "setMyCommands", do: s.setMyCommands},
		"sendmessage":            {name: "sendMessage", sends: true, do: s.sendMessage},
		"sendphoto":              {name: "sendPhoto", sends: true, do: s.sendFile("photo")},
		"senddocument":           {name: "sendDocument", sends: true, do: s.sendFile("document")},
		"sendvideo":              {name: "sendVideo", sends: true, do: s.sendFile("video")},
		"sendaudio":              {name: "sendAudio", sends: true, do: s.sendFile("audio")},
		"sendvoice":              {name: "sendVoice", sends: true, do: s.sendFile("voice")},
		"sendpoll":               {name: "sendPoll", sends: true, do: s.sendPoll},
		"stoppoll":               {name: "stopPoll", do: s.stopPoll},
		"editmessagetext":        {name: "editMessageText", sends: true, do: s.editMessageText},
		"editmessagecaption":     {name: "editMessageCaption", sends: true, do: s.editMessageCaption},
		"editmessagereplymarkup": {name: "editMessageReplyMarkup", sends: true, do: s.editMessageReplyMarkup},
		"answercallbackquery":    {name: "answerCallbackQuery", do: s.answerCallbackQuery},
		"deletemessage":          {name: "deleteMessage", do: s.deleteMessage},
		"sendchataction":         {name: "sendChatAction", do: s.sendChatAction},
		"setmessagereaction":     {name: "setMessageReaction", do: s.setMessageReaction},
		"getfile":                {name: "getFile", do: s.getFile},
		"getchat":                {name: "getChat", do: s.getChat},

		"getchatadministrators": {name: "getChatAdministrators", do: s.getChatAdministrators},
	}
}

func (s *Server) getMe(params) (any, error) {
	return fields{"id": s.me.ID, "is_bot": true, "first_name": s.me.FirstName, "username": s.me.Username,
		"can_join_groups": true, "can_read_all_group_messages": !s.privacy, "supports_inline_queries": false}, nil
}

func (s *Server) getChat(p params) (any, error) {
	r, err := s.readable(p)
	if err != nil {
		return nil, err
	}
	return struct {
		Chat
		NoVoices bool `json:"has_restricted_voice_and_video_messages,omitempty"`
	}{r.chat, r.voiceless}, nil
}

func (s *Server) getChatAdministrators(p params) (any, error) {
	r, err := s.readable(p)
	switch {
	case err != nil:
		return nil, err
	case r.chat.Type == Private:
		return nil, badRequest("there are no administrators in the private chat")
	}
	all := []any{}
	for _, id := range slices.Sorted(maps.Keys(r.statuses)) {
		if u := s.users[id]; r.admin(u) && (!u.IsBot || u.ID == s.me.ID) {
			all = append(all, r.member(u))
		}
	}
	return all, nil
}
