// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// serverVersion is the version of the API server, and when it was read.
type serverVersion struct {
	text  string
	asked time.Time
}

// versionAge is how long the version of the API server is cached.
const versionAge = time.Minute

// ServerVersion returns the version of the API server: v1.36.3. It is read as the
// account, which is allowed by default in every cluster, at most once a minute.
func (c *Client) ServerVersion(ctx context.Context) (string, error) {
	now := c.now()
	if known := c.version.Load(); known != nil && now.Sub(known.asked) < versionAge {
		return known.text, nil
	}
	answer, err := c.send(ctx, c.raw.Get().AbsPath("/version"))
	if err != nil {
		return "", fmt.Errorf("asking the API server for its version: %w", err)
	}
	var info struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(answer.raw, &info); err != nil || info.GitVersion == "" {
		return "", fmt.Errorf("asking the API server for its version: it gave none")
	}
	c.version.Store(&serverVersion{text: info.GitVersion, asked: now})
	return info.GitVersion, nil
}
