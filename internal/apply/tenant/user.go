// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
)

// ForUser makes a client for the user of a configuration, for command-line programs:
// the user's own permissions limit what it reads and tries. It impersonates no account,
// and its Identity is empty. No controller may use it.
func ForUser(base *rest.Config, o Options) (*Client, error) {
	o = o.defaulted()
	config := prepared(base, o)
	config.Impersonate = base.Impersonate
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the API server: %w", err)
	}
	kinds, err := discovery.New(config, transport, o.kinds())
	if err != nil {
		return nil, err
	}
	return newClient(Identity{}, config, transport, kinds, o)
}
