package storage

// StartBy is Start by another clock.
var StartBy = startBy
