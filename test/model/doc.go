// Package model says what must be where: a few pages of plain Go that know which resources there are, who wrote them, and by
// the documented rules, under which name each server has them. It imports nothing of Causeway, the name hash included, so
// that a mistake there is not repeated here. Its tests write at random to real servers, break processes and links between
// writes, and compare every server with the model.
package model
