//! Where a provider runs, as its base URL and model name tell (spec 5.1).
//!
//! A total function: text that is no URL is taken for a cloud service, whose limits are
//! the strictest. It resolves no name and asks nobody.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tidegate_core::ProviderClass;

/// Names under which containers reach the machine that they run on.
const HOST_ALIASES: [&str; 3] = [
    "host.docker.internal",
    "gateway.docker.internal",
    "host.containers.internal",
];

/// Model servers that people run themselves; such a word in a bare host name (`http://ollama:11434`)
/// is the local marker of the spec.
const OWN_SERVERS: [&str; 5] = ["ollama", "lmstudio", "vllm", "sglang", "llama"];

/// The class of the provider at `base_url` when it is asked for `model`. A model that a
/// local server only passes on to a cloud (`name:cloud`, `name:120b-cloud`) is a cloud model.
#[must_use]
pub fn provider_class(base_url: &str, model: &str) -> ProviderClass {
    let Some(host) = host(base_url) else {
        return ProviderClass::Cloud;
    };
    if is_local(&host) {
        return if is_cloud_model(model) {
            ProviderClass::Cloud
        } else {
            ProviderClass::Local
        };
    }
    let bare = !host.contains(['.', ':']);
    let own = bare && OWN_SERVERS.iter().any(|word| host.contains(word));
    if own || HOST_ALIASES.contains(&host.as_str()) {
        ProviderClass::SelfHosted
    } else {
        ProviderClass::Cloud
    }
}

/// The host of a URL in lower case, without port, brackets and final dot.
fn host(url: &str) -> Option<String> {
    let (_, rest) = url.trim().split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let place = authority
        .rsplit_once('@')
        .map_or(authority, |(_, place)| place);
    let host = match place.strip_prefix('[') {
        Some(v6) => v6.split_once(']')?.0,
        None => place.split(':').next()?,
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

fn is_local(host: &str) -> bool {
    match host.parse() {
        Ok(IpAddr::V4(ip)) => is_local_v4(ip),
        Ok(IpAddr::V6(ip)) => is_local_v6(ip),
        Err(_) => host == "localhost" || host.ends_with(".local"),
    }
}

fn is_local_v4(ip: Ipv4Addr) -> bool {
    let [a, b, ..] = ip.octets();
    let shared = a == 100 && (64..128).contains(&b); // 100.64/10: carriers and overlay networks
    ip.is_unspecified() || ip.is_loopback() || ip.is_private() || shared
}

fn is_local_v6(ip: Ipv6Addr) -> bool {
    let mapped_loopback = ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback());
    ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local() || mapped_loopback
}

fn is_cloud_model(model: &str) -> bool {
    let tag = model
        .trim()
        .rsplit_once(':')
        .map_or("", |(_, tag)| tag)
        .to_ascii_lowercase();
    tag == "cloud" || tag.ends_with("-cloud")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn class(url: &str) -> ProviderClass {
        provider_class(url, "m")
    }

    /// Spec 5.1
    #[test]
    fn this_machine_and_private_networks_are_local() {
        for url in [
            "http://localhost:8080/v1",
            "HTTP://LocalHost./v1",
            "http://0.0.0.0:1/v1",
            "http://[::1]:11434/v1",
            "http://127.8.9.1/v1",
            "http://10.1.2.3/v1",
            "http://172.16.0.1/v1",
            "http://172.31.255.255/v1",
            "http://192.168.1.4/v1",
            "http://100.64.0.1/v1",
            "http://100.127.0.1/v1",
            "http://[fd00::1]/v1",
            "http://[fe80::1]/v1",
            "http://box.local:8000/v1",
            "http://[::ffff:127.0.0.1]/v1",
            "http://key@127.0.0.1/v1",
        ] {
            assert_eq!(class(url), ProviderClass::Local, "{url}");
        }
    }

    /// Spec 5.1
    #[test]
    fn own_servers_on_the_network_are_self_hosted() {
        for url in [
            "http://ollama:11434/v1",
            "http://my-vllm/v1",
            "http://host.docker.internal:1234/v1",
            "http://host.containers.internal/v1",
        ] {
            assert_eq!(class(url), ProviderClass::SelfHosted, "{url}");
        }
    }

    /// Spec 5.1
    #[test]
    fn everything_else_is_cloud() {
        for url in [
            "https://api.example.com/v1",
            "https://ollama.example.com/v1",
            "http://172.32.0.1/v1",
            "http://100.128.0.1/v1",
            "http://100.63.0.1/v1",
            "http://[2001:db8::1]/v1",
            "http://[::ffff:10.0.0.1]/v1",
            "http://localhost.example.com/v1",
            "https://127.0.0.1@example.com/v1",
            "http://gpubox:8000/v1",
            "",
            "localhost:8080",
            "http://",
            "http://[::1",
        ] {
            assert_eq!(class(url), ProviderClass::Cloud, "{url:?}");
        }
    }

    /// Spec 5.1
    #[test]
    fn a_cloud_model_behind_a_local_server_is_cloud() {
        let local = "http://127.0.0.1:11434/v1";
        assert_eq!(provider_class(local, "glm:cloud"), ProviderClass::Cloud);
        assert_eq!(
            provider_class(local, "oss:120b-Cloud"),
            ProviderClass::Cloud
        );
        assert_eq!(provider_class(local, "cloud"), ProviderClass::Local);
    }

    proptest! {
        #[test]
        fn any_text_has_a_class(url in ".*", model in ".*") {
            let _ = provider_class(&url, &model);
            let _ = provider_class(&format!("http://{url}"), &model);
        }
    }
}
