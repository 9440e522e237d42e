// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/satchel-dev/satchel/internal/artifact"
)

// Readers authenticates the bearer of a token, and returns the function that tells which namespaces' artifacts it may read.
// The error is ErrUnauthenticated for an invalid token; any other means that the token could not be reviewed.
type Readers func(ctx context.Context, token string) (mayRead func(namespace string) bool, err error)

// ErrUnauthenticated says that a token is not valid here.
var ErrUnauthenticated = errors.New("the token is not valid here")

// permit answers what the sender of a request may read; 0 when it may read the namespace, else the status to refuse with.
// Nothing of the store has been looked at until then, so that no refusal tells what exists.
func (h *Handler) permit(r *http.Request, namespace string) int {
	if h.readers == nil {
		return 0
	}
	token, ok := bearerToken(r.Header)
	if !ok {
		return http.StatusUnauthorized
	}
	mayRead, err := h.readers(r.Context(), token)
	switch {
	case errors.Is(err, ErrUnauthenticated):
		return http.StatusUnauthorized
	case err != nil:
		return http.StatusServiceUnavailable
	case namespace != "" && !mayRead(namespace):
		return http.StatusForbidden
	}
	return 0
}

// bearerToken is the token of the one Authorization header that a request may have.
func bearerToken(header http.Header) (string, bool) {
	values := header.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, found := strings.Cut(values[0], " ")
	return token, found && strings.EqualFold(scheme, "Bearer") && token != "" && len(token) <= artifact.MaxTokenBytes
}
