// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	// Login plugins of kubectl.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	// Log format and metrics, as the programs' own mains register them.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserverapp "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanagerapp "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	schedulerapp "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func etcd() int {
	etcdmain.Main(os.Args)
	return 0
}

func apiServer() int {
	return cli.Run(apiserverapp.NewAPIServerCommand())
}

func controllerManager() int {
	return cli.Run(controllermanagerapp.NewControllerManagerCommand())
}

func scheduler() int {
	return cli.Run(schedulerapp.NewSchedulerCommand())
}

func kubectl() int {
	// Before the command is built, because building it reads plugins and preferences already.
	_, _ = logs.GlogSetter(kubectlcmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(kubectlcmd.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
	return 0
}
