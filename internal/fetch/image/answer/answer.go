// SPDX-License-Identifier: Apache-2.0

// Package answer reads how registries and token servers say that something failed.
package answer

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// maxErrorBody bounds the explanation of a failure.
const maxErrorBody = 64 << 10

// Failure returns the error for an answer that is not a success, and closes it. Its reason follows from the status code; of the
// body only a well-formed error code is shown.
func Failure(response *http.Response) error {
	err := fetch.StatusError(response.StatusCode, response.Header, errorCode(response.Body))
	if closeErr := response.Body.Close(); closeErr != nil {
		return errors.Join(err, closeErr)
	}
	return &StatusError{Code: response.StatusCode, err: err}
}

// StatusError is a failure together with the code that the server gave.
type StatusError struct {
	Code int
	err  error
}

// Error implements error.
func (e *StatusError) Error() string { return e.err.Error() }

// Unwrap returns the failure.
func (e *StatusError) Unwrap() error { return e.err }

// errorCode returns the first code of a registry's error document, "" when there is none.
func errorCode(body io.Reader) string {
	var answer struct {
		Errors []struct {
			Code string `json:"code"`
		} `json:"errors"`
	}
	err := json.NewDecoder(io.LimitReader(body, maxErrorBody)).Decode(&answer)
	if err != nil || len(answer.Errors) == 0 {
		return ""
	}
	return cleanCode(answer.Errors[0].Code)
}

// codeText is what the distribution specification allows as an error code.
var codeText = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

func cleanCode(code string) string {
	if codeText.MatchString(code) {
		return code
	}
	return ""
}
