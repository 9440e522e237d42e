// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// adminUser is the user of [ControlPlane.RESTConfig], a member of system:masters.
const adminUser = "kubernetes-admin"

// writeKubeconfig writes a kubeconfig, with all data inline, for the user with the named certificate.
func writeKubeconfig(path, server, user string, certs pki) error {
	config := clientcmdapi.NewConfig()
	cluster := &clientcmdapi.Cluster{Server: server}
	auth := &clientcmdapi.AuthInfo{}
	for file, data := range map[string]*[]byte{
		certs.cert(clusterCA): &cluster.CertificateAuthorityData,
		certs.cert(user):      &auth.ClientCertificateData,
		certs.key(user):       &auth.ClientKeyData,
	} {
		read, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
		}
		*data = read
	}
	const name = "satchel"
	config.Clusters[name] = cluster
	config.AuthInfos[user] = auth
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	return nil
}

// loadRESTConfig reads a kubeconfig and lifts the client's own rate limit, which would measure itself.
func loadRESTConfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", path, err)
	}
	config.QPS, config.Burst = 1000, 2000
	return config, nil
}
