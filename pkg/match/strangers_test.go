package match

import "testing"

func TestExpr_AdmitsStrangers_ByExpression(t *testing.T) {
	for text, want := range map[string]struct{ strangers, dms bool }{
		"":                                    {true, true},
		"platform=telegram":                   {true, true},
		"platform=telegram verb=mention":      {true, true}, // a direct message may mention the bot
		"platform=*":                          {true, true},
		"verb=reply":                          {true, true},
		"sender_name=Ann":                     {true, true}, // anyone may be called Ann
		"sender=telegram:42":                  {false, false},
		"sender=telegram:*":                   {true, true},
		"sender=*42":                          {true, true},
		"sender=":                             {false, false}, // each user has an id
		"sender=web:*":                        {false, false},
		"sender=agent:*":                      {false, false},
		"room=-1001234":                       {false, false},
		"room=-100*":                          {true, false},
		"room=-1001234.*":                     {true, true}, // all who write to a channel
		"room=[4]2":                           {true, true},
		"room=*":                              {true, true},
		"chat_jid=telegram:42":                {false, false},
		"chat_jid=telegram:*":                 {true, true},
		"chat_jid=telegram:-*":                {true, false},
		"chat_jid=*:*":                        {true, true},
		"chat_jid=web:*":                      {false, false},
		"chat_jid=group:acme/*":               {false, false},
		"chat_jid=telegram+work:-*":           {true, false},
		"chat_jid=slack+work:C*":              {true, false},
		"chat_jid=slack+work:D*":              {true, true},
		"account=work":                        {true, true},
		"platform=slack account=work room=C*": {true, false},
		"platform=web":                        {false, false},
		"platform=web verb=mention":           {false, false},
		"platform=slack room=C*":              {true, false},
		"platform=slack room=D*":              {true, true},
		"platform=discord room=dm-*":          {true, true},
		"platform=discord room=9*":            {true, false},
		"platform=discord room=d*":            {true, true},
		"platform=matrix room=C*":             {true, true}, // its direct messages are not known
		"chat_jid=slack:C*":                   {true, false},
		"room=C*":                             {true, true}, // of a telegram room for all that is known here
		"platform=telegram sender=telegram:4": {false, false},
	} {
		expr, err := ParseMatch(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := expr.AdmitsStrangers(); got != want.strangers {
			t.Errorf("%q admits strangers: %t", text, got)
		}
		if got := expr.AdmitsStrangersDMs(); got != want.dms {
			t.Errorf("%q admits strangers' direct messages: %t", text, got)
		}
	}
}

func TestExpr_NameLike_SenderWithoutColon(t *testing.T) {
	for text, want := range map[string]string{
		"sender=*Lee": "*Lee", "sender=Ann*": "Ann*", "sender=*42": "*42", "sender=[A]nn": "[A]nn",
		"sender=*": "", "sender=??": "", "sender=telegram:*": "", "sender=*:42": "", "sender=slack*": "", "sender=slack+work*": "",
		"sender_name=*Lee": "", "sender=telegram:42": "", "": "",
	} {
		expr, err := ParseMatch(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := expr.NameLike(); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
