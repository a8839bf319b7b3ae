package chatmove

// MoveSome moves one page of a chat.
var MoveSome = moveSome
