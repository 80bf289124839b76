//! Streams a WAV file in real time as G.711 mu-law over RTP over DCCP, and writes what arrived:
//!
//! ```sh
//! cargo run -p udccp-rtp --example stream_wav -- in.wav out.wav
//! ```
//!
//! Both ends run in this process, joined by the loopback interface. The file must have 16-bit
//! samples; the first channel is taken and brought to 8000 samples a second by averaging.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Duration;

use udccp::{Connection, Listener, Options};
use udccp_rtp::sdp::{Format, Kind, MediaDescription};
use udccp_rtp::{Event, RtpOptions, RtpSession, SERVICE_AUDIO};

const RATE: u32 = 8000;
/// 20 ms.
const FRAME_SAMPLES: usize = 160;
/// Payload type of G.711 mu-law (RFC 3551 section 6).
const PCMU: u8 = 0;

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Done<()> {
    let args: Vec<String> = std::env::args().collect();
    let [_, input, output] = &args[..] else {
        return Err("write: stream_wav IN.wav OUT.wav".into());
    };
    let samples = read(input)?;
    let offer = MediaDescription::new(Kind::Audio, vec![Format::fixed(PCMU)]).listening();
    println!("a description of this session:\n{offer}");

    let listener = Listener::bind_with("127.0.0.1:0".parse()?, [SERVICE_AUDIO], &Options::new())?;
    let at = listener.local_addr();
    let options = RtpOptions::new(PCMU, RATE)
        .lifetime(Duration::from_millis(60))
        .least_interval(Duration::from_millis(500))
        .bandwidth(800_000);
    let receiver = tokio::spawn(receive(listener, options.clone()));
    let session = RtpSession::new(Connection::connect(at, SERVICE_AUDIO).await?, &options)?;
    stream(&session, &samples).await?;
    session.close().await?;
    let arrived = receiver.await??;
    write(output, &arrived)?;
    println!("{} samples sent, {} written to {output}", samples.len(), arrived.len());
    Ok(())
}

/// Sends 50 packets a second, and prints what the receiver reports.
async fn stream(session: &RtpSession, samples: &[i16]) -> Done<()> {
    let sending = async {
        let mut clock = tokio::time::interval(Duration::from_millis(20));
        for (n, frame) in samples.chunks(FRAME_SAMPLES).enumerate() {
            clock.tick().await;
            let coded: Vec<u8> = frame.iter().map(|&s| mu_law(s)).collect();
            let timestamp = u32::try_from(n * FRAME_SAMPLES)?;
            session.send(timestamp, n == 0, coded).await?;
        }
        Done::Ok(())
    };
    let reports = async {
        while let Some(event) = session.recv().await? {
            if let Event::Report(report) = event {
                for block in report.blocks {
                    println!(
                        "the receiver reports: lost {} ({:.1} % of late), jitter {:.2} ms, \
                         round trip {:?}",
                        block.lost,
                        block.fraction_lost * 100.0,
                        f64::from(block.jitter) * 1000.0 / f64::from(RATE),
                        block.rtt
                    );
                }
            }
        }
        Done::Ok(())
    };
    tokio::select! {
        done = sending => done?,
        done = reports => done?,
    }
    let stats = session.stats();
    println!(
        "sent {} packets, {} bytes of sound, {} reports; {} packets expired",
        stats.packets_sent, stats.octets_sent, stats.reports_sent, stats.packets_expired
    );
    Ok(())
}

/// Puts packets in order; missing ones become silence.
async fn receive(listener: Listener, options: RtpOptions) -> Done<Vec<i16>> {
    let session = RtpSession::new(listener.accept().await?, &options)?;
    let (mut samples, mut start) = (Vec::new(), None);
    while let Some(event) = session.recv().await? {
        match event {
            Event::Packet(packet) => {
                let start = *start.get_or_insert(packet.timestamp);
                let at = packet.timestamp.wrapping_sub(start) as usize;
                let end = at + packet.payload.len();
                if samples.len() < end {
                    samples.resize(end, 0);
                }
                for (sample, &code) in samples[at..end].iter_mut().zip(&packet.payload) {
                    *sample = linear(code);
                }
            }
            Event::Bye { reason, .. } => {
                println!("the sender left: {}", reason.unwrap_or_default())
            }
            _ => {}
        }
    }
    for source in session.stats().sources {
        println!(
            "heard {} packets of {:08x}, {} lost, jitter {:?}",
            source.packets_received, source.ssrc, source.lost, source.jitter
        );
    }
    Ok(samples)
}

/// The first channel at 8000 samples a second: the mean of the samples that fall together.
fn read(path: &str) -> Done<Vec<i16>> {
    let mut file = hound::WavReader::open(path)?;
    let spec = file.spec();
    if spec.bits_per_sample != 16 || spec.sample_rate % RATE != 0 {
        return Err(format!("{path}: needs 16 bits and a multiple of {RATE} Hz").into());
    }
    let first = file.samples::<i16>().step_by(usize::from(spec.channels));
    let first = first.collect::<Result<Vec<i16>, _>>()?;
    let step = (spec.sample_rate / RATE) as usize;
    let mean = |c: &[i16]| (c.iter().map(|&s| i32::from(s)).sum::<i32>() / c.len() as i32) as i16;
    Ok(first.chunks(step).map(mean).collect())
}

fn write(path: &str, samples: &[i16]) -> Done<()> {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: RATE,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut file = hound::WavWriter::create(path, spec)?;
    for &sample in samples {
        file.write_sample(sample)?;
    }
    Ok(file.finalize()?)
}

/// ITU-T G.711, mu-law.
fn mu_law(sample: i16) -> u8 {
    let sign = if sample < 0 { 0x80 } else { 0 };
    let magnitude = i32::from(sample).abs().min(32_635) + 132;
    let exponent = (magnitude >> 7).ilog2();
    let mantissa = (magnitude >> (exponent + 3)) & 0xf;
    !(sign | (exponent as u8) << 4 | mantissa as u8)
}

fn linear(code: u8) -> i16 {
    let code = !code;
    let magnitude = ((i32::from(code & 0xf) << 3) + 132) << (code >> 4 & 7);
    let magnitude = (magnitude - 132) as i16;
    if code & 0x80 != 0 { -magnitude } else { magnitude }
}
