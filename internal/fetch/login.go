// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"net/http"
)

// Login are credentials for a server: a user name and password, or a token. The zero value is anonymous.
type Login struct {
	Username, Password string
	// Token is sent as a bearer token, and instead of the others.
	Token string
}

// Empty tells whether there are no credentials.
func (l Login) Empty() bool { return l == Login{} }

// Authorize puts the login on a request. Redirects to other servers lose it in the clients of package guard.
func (l Login) Authorize(request *http.Request) {
	switch {
	case l.Token != "":
		request.Header.Set("Authorization", "Bearer "+l.Token)
	case !l.Empty():
		request.SetBasicAuth(l.Username, l.Password)
	}
}
