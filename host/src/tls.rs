//! TLS as all of this program speaks it: which cryptography, and whose certificates.

/// Whoever speaks TLS, or only could, asks for this first.
pub fn choose_cryptography() {
    // Fails if somebody was here before: it is the same choice.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// A client for this URL. One that speaks no TLS works on a machine without certificates too, as in an empty container.
pub fn client(url: &str) -> reqwest::ClientBuilder {
    choose_cryptography();
    let client = reqwest::Client::builder();
    if url.starts_with("https://") { client } else { client.tls_certs_only([]) }
}
