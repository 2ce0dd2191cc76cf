// Package reach decides to which addresses a proxy may be led. It is pure, and resolves no names.
package reach
