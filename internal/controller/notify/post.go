// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
)

// send posts an event, with retries if they may help.
func (r *Recorder) send(ctx context.Context, one eventv1.Event) error {
	body, err := json.Marshal(one)
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		again, err := r.post(ctx, body)
		if err == nil || !again || attempt == attempts {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(r.pause << attempt):
		}
	}
}

// post tells whether another attempt may help.
func (r *Recorder) post(ctx context.Context, body []byte) (again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.options.Address, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := r.client.Do(request)
	var failed *url.Error
	if errors.As(err, &failed) {
		err = fmt.Errorf("posting to %s: %w", r.host, failed.Err) // without the URL, which may hold a credential
	}
	if err != nil {
		return true, err
	}
	if err := response.Body.Close(); err != nil {
		return true, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests,
			fmt.Errorf("%s answers %s", r.host, response.Status)
	}
	return false, nil
}
