package telegramapi

// Present is true if a message has a field, with any content.
type Present bool

// UnmarshalJSON accepts any value; null counts as none.
func (p *Present) UnmarshalJSON(value []byte) error {
	*p = string(value) != "null"
	return nil
}

// Notices are messages about the chat itself, besides those about members and topics. No user wrote them.
type Notices struct {
	NewChatTitle                  Present `json:"new_chat_title"`
	NewChatPhoto                  Present `json:"new_chat_photo"`
	DeleteChatPhoto               Present `json:"delete_chat_photo"`
	GroupChatCreated              Present `json:"group_chat_created"`
	SupergroupChatCreated         Present `json:"supergroup_chat_created"`
	ChannelChatCreated            Present `json:"channel_chat_created"`
	PinnedMessage                 Present `json:"pinned_message"`
	MessageAutoDeleteTimerChanged Present `json:"message_auto_delete_timer_changed"`
	ChatOwnerLeft                 Present `json:"chat_owner_left"`
	ChatOwnerChanged              Present `json:"chat_owner_changed"`
	ChatBackgroundSet             Present `json:"chat_background_set"`
	CommunityChatAdded            Present `json:"community_chat_added"`
	CommunityChatJoined           Present `json:"community_chat_joined"`
	CommunityChatRemoved          Present `json:"community_chat_removed"`
	BoostAdded                    Present `json:"boost_added"`
	GeneralForumTopicHidden       Present `json:"general_forum_topic_hidden"`
	GeneralForumTopicUnhidden     Present `json:"general_forum_topic_unhidden"`
	VideoChatScheduled            Present `json:"video_chat_scheduled"`
	VideoChatStarted              Present `json:"video_chat_started"`
	VideoChatEnded                Present `json:"video_chat_ended"`
	VideoChatParticipantsInvited  Present `json:"video_chat_participants_invited"`
	ProximityAlertTriggered       Present `json:"proximity_alert_triggered"`
	WriteAccessAllowed            Present `json:"write_access_allowed"`
	ConnectedWebsite              Present `json:"connected_website"`
	PassportData                  Present `json:"passport_data"`
	SuccessfulPayment             Present `json:"successful_payment"`
	RefundedPayment               Present `json:"refunded_payment"`
	GiftUpgradeSent               Present `json:"gift_upgrade_sent"`
	GiveawayCreated               Present `json:"giveaway_created"`
	GiveawayCompleted             Present `json:"giveaway_completed"`
	ManagedBotCreated             Present `json:"managed_bot_created"`
	PaidMessagePriceChanged       Present `json:"paid_message_price_changed"`
	DirectMessagePriceChanged     Present `json:"direct_message_price_changed"`
	SuggestedPostApproved         Present `json:"suggested_post_approved"`
	SuggestedPostApprovalFailed   Present `json:"suggested_post_approval_failed"`
	SuggestedPostPaid             Present `json:"suggested_post_paid"`
	SuggestedPostRefunded         Present `json:"suggested_post_refunded"`
}

// IsNotice reports whether the message is one of them.
func (n Notices) IsNotice() bool { return n != Notices{} }
