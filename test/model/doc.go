// Package model predicts which server must have which resource, in a few pages of plain Go. It knows which resources
// exist, who wrote them, and the documented rules for their names on each server. It imports nothing of Causeway, not
// even the name hash, so that a mistake there is not repeated here. Its tests write to real servers at random, break
// processes and links between writes, and compare every server with the model.
package model
