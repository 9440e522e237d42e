// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// loadRESTConfig reads a kubeconfig and lifts the client's own rate limit, which would measure itself.
func loadRESTConfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", path, err)
	}
	config.QPS, config.Burst = 1000, 2000
	return config, nil
}
